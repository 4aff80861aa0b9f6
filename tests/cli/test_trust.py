"""Intervals, calibrated probabilities, the domain and the report, from the command line; the numbers by hand."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.interfaces import cli
from graphormer_sepnorm.recipes import RECIPES, Recipe
from tests.cli.test_starting import NOT_FOR_PREDICTING, modules_after
from tests.cli.test_train_csv import tiny

pytestmark = pytest.mark.slow
HOSTILE = '<script>alert("1")</script> & $\\frac{x}$'


def trained(folder: Path, table: pd.DataFrame, *options: object) -> dict:
    table.to_csv(folder / "mols.csv", index=False)
    arguments = ["train", "--csv", folder / "mols.csv", "--recipe", "tiny", "--epochs", 1, "--ensemble", 1]
    arguments += ["--no-blend"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "tiny", Recipe(tiny, TrainConfig()))
        patch.setattr(sys, "argv", ["graphormer-sepnorm", *map(str, [*arguments, "--out", folder / "run", *options])])
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert not end.value.code
    return json.loads((folder / "run" / "test.json").read_text())


@pytest.fixture(scope="module")
def regression(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("regression")
    table = sample_table().head(150)[["smiles", "penalized_logp"]].rename(columns={"penalized_logp": HOSTILE})
    trained(folder, table, "--target-columns", HOSTILE, "--split-sizes", "60:20:20")
    return folder / "run"


@pytest.fixture
def predicted(command, tmp_path):
    def run(model: Path, smiles: list[str], *options: object) -> tuple[pd.DataFrame, str]:
        pd.DataFrame({"smiles": smiles}).to_csv(tmp_path / "in.csv", index=False)
        code, _, messages = command("predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", *options)
        assert code == 0, messages
        return pd.read_csv(tmp_path / "out.csv"), messages

    return run


def rows_of(run: Path, split: str) -> pd.DataFrame:
    table = pd.read_csv(run / "table.csv")
    return table[table.split != "test"] if split == "learnt" else table[table.split == split]


def result_of(run: Path) -> dict:
    return json.loads((run / "test.json").read_text())


def test_coverage_is_what_the_written_intervals_hold(regression, predicted):
    test, kept = rows_of(regression, "test"), result_of(regression)["trust"]
    y = test[f"target {HOSTILE}"].to_numpy()
    for confidence in (0.5, 0.8, 0.9):
        out, _ = predicted(regression, test.smiles.tolist(), "--interval", confidence)
        inside = (y >= out[f"{HOSTILE}_low"]) & (y <= out[f"{HOSTILE}_high"])
        assert kept["coverage"][str(confidence)][HOSTILE] == pytest.approx(inside.mean())
        width = (out[f"{HOSTILE}_high"] - out[f"{HOSTILE}_low"]).mean()
        assert kept["mean_width"][str(confidence)][HOSTILE] == pytest.approx(width, rel=1e-3)
    assert kept["calibrated_on"] == len(rows_of(regression, "val")) >= 20


def test_intervals_and_the_domain_import_no_more_than_a_prediction(regression):
    modules = modules_after("predict", regression, "CCO", "--domain", "--interval", 0.5)
    assert sorted(modules & NOT_FOR_PREDICTING) == ["scipy.sparse"]  # for the fingerprints of the kernel
