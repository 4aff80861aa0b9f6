"""The command ``suggest``."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.interfaces import commands
from tests.tiny import save_tiny, save_two


@pytest.mark.slow
def test_molecules_are_suggested_from_the_shell(command, tmp_path):
    save_two(tmp_path / "model")
    sample_table()[:30].to_csv(tmp_path / "library.csv", index=False)
    out = tmp_path / "next.xlsx"
    arguments = ["-n", 4, "--by", "expected-improvement", "--best", 0.5, "--minimize", "--alerts", "--workers", 1]
    arguments += ["-o", out]
    code, result, _ = command("suggest", tmp_path / "model", tmp_path / "library.csv", *arguments)
    assert code == 0 and (result["suggested"], result["rows"], result["best"]) == (4, 30, 0.5)
    found = pd.read_excel(out)
    assert found["rank"].tolist() == [1, 2, 3, 4] and {"logp", "logp_std", "alerts"} < set(found)
    assert found.expected_improvement.is_monotonic_decreasing and set(found.smiles) < set(sample_table().smiles)
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["-o", "-"]])
def test_without_a_file_molecules_are_printed(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\nCCO\n")
    asked = ["suggest", "model", "library.csv", "--by", "prediction", "-n", "2", "--workers", "1"]
    written = CliRunner().invoke(commands.app, [*asked, "-o", "next.csv"])
    printed = CliRunner().invoke(commands.app, [*asked, *arguments])
    assert written.exit_code == printed.exit_code == 0
    assert printed.stdout == (tmp_path / "next.csv").read_text() and "rank" in printed.stdout
    assert printed.stderr.endswith("2 molecules of 2 rows\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "model", "next.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["library.csv", "--scheduler", "tcp://x", "-o", "-"], "with --scheduler, name the output: -o OUT.csv"),
        (["library.csv", "--target", "log_p"], "predicts logp; did you mean 'logp'?"),
        (["none.csv", "--by", "prediction"], "there are no files none.csv"),
    ],
)
def test_bad_input_is_one_sentence(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\n")
    code, _, messages = command("suggest", "model", *arguments, *([] if "-o" in arguments else ["-o", "next.csv"]))
    assert code == 2 and message in messages and messages.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "model"]
