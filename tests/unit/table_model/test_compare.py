"""Runs on the same test rows, by what their folders hold."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.compare import compare_runs, comparison_lines

Y = np.random.default_rng(0).normal(size=40)


def write_run(folder: Path, prediction: np.ndarray, y: np.ndarray = Y, **changes) -> Path:
    """The files of a finished run that a comparison reads."""
    folder.mkdir()
    task = TaskConfig("regression", changes.get("metric", "mae"), ("y",))
    facts = {"task": asdict(task), "featurizer": "mol", "options": changes.get("options", {})}
    (folder / "table.json").write_text(json.dumps(facts))
    (folder / "test.json").write_text(json.dumps({"dataset": changes.get("dataset", "table.csv"), "value": 1.0}))
    smiles = changes.get("smiles", "C")
    lines = [
        f"{row},{smiles},test,{'' if np.isnan(label) else label},{value}"
        for row, (label, value) in enumerate(zip(y, prediction, strict=True), changes.get("start", 0))
    ]
    lines = lines[::-1] if changes.get("reversed") else lines
    (folder / "predictions.csv").write_text("\n".join(["row,smiles,split,y,y_predicted", *lines]) + "\n")
    return folder


def test_a_run_that_is_always_nearer_is_better_in_every_draw(tmp_path):
    """Errors of 0.5 everywhere against errors of 0.25 everywhere: scores and difference have no width."""
    runs = [write_run(tmp_path / "far", Y + 0.5), write_run(tmp_path / "near", Y - 0.25, reversed=True)]
    compared = compare_runs(runs)
    assert (compared["metric"], compared["higher_is_better"]) == ("mae", False)
    found = compared["targets"]["y"]
    first, second = found["runs"].values()
    assert (found["n"], found["too_few"]) == (40, False)
    assert first["value"] == pytest.approx(0.5) and second["value"] == pytest.approx(0.25)
    assert second["difference"] == pytest.approx(-0.25) and second["difference_interval"] == pytest.approx([-0.25] * 2)
    assert second["better"] == 1 and first["better"] == 0 and first["difference"] == 0
    header, above, below, *tops = comparison_lines(compared)[-5:]
    assert [side["found"] for side in second["top"].values()] == [4, 4] and len(tops) == 2
    assert header == "y: MAE on 40 molecules, 95 % intervals" and "difference" not in above
    assert below.endswith("0.250 (0.250 to 0.250)  difference -0.250 (-0.250 to -0.250), better in 100 % of draws")


def test_a_run_that_misses_bounds_is_less_likely(tmp_path):
    """Both predict exact labels equally well; of labels above 1, known only as such, one run predicts 0."""
    runs = [write_run(tmp_path / "near", Y + 0.1), write_run(tmp_path / "far", np.where(Y > 1, 0, Y + 0.1))]
    for run in runs:
        lines = (run / "predictions.csv").read_text().splitlines()
        fields = [line.split(",") for line in lines[1:]]
        bounds = [[*each[:3], ">1.0" if float(each[3]) > 1 else each[3], each[4]] for each in fields]
        (run / "predictions.csv").write_text("\n".join([lines[0], *(",".join(each) for each in bounds)]) + "\n")
    compared = compare_runs(runs)
    first, second = compared["targets"]["y"]["runs"].values()
    assert compared["targets"]["y"]["n"] == 40 - first["bounds"]["bounds"] == (Y <= 1).sum()
    assert second["difference"] == 0 > second["bounds"]["difference"] and second["bounds"]["better"] < 0.05
    assert (first["bounds"]["right_side"], second["bounds"]["right_side"]) == (1, 0)
    assert comparison_lines(compared)[-1].strip().startswith(str(tmp_path / "far"))


def test_draws_are_paired(tmp_path):
    """Errors that are the same but for a constant differ by it in every draw, however much the scores vary."""
    error = np.abs(np.random.default_rng(1).normal(size=40))
    runs = [write_run(tmp_path / "a", Y + error), write_run(tmp_path / "b", Y + error + 0.1)]
    second = list(compare_runs(runs)["targets"]["y"]["runs"].values())[1]
    assert np.ptp(second["interval"]) > 0.1 and np.ptp(second["difference_interval"]) < 1e-6


@pytest.mark.parametrize(("drawn", "read"), [("[Na+].CC(=O)[O-]", "CC(O)=O"), ("[2H][C@H](F)Cl", "FCCl")])
def test_a_molecule_and_its_standardized_form_are_the_same_row(tmp_path, drawn, read):
    runs = [write_run(tmp_path / "drawn", Y, smiles=drawn), write_run(tmp_path / "read", Y, smiles=read)]
    assert compare_runs(runs)["targets"]["y"]["n"] == 40


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"smiles": "CC"}, "have different test rows: train both on one table with the same --split"),
        ({"start": 30, "smiles": "CC"}, "have different test rows"),
        ({"y": Y + 1}, "have different test labels"),
        ({"dataset": "zinc"}, "have different datasets"),
        ({"metric": "rmse"}, "have different metrics"),
    ],
)
def test_runs_on_other_rows_are_refused(tmp_path, changes, message):
    first = write_run(tmp_path / "first", Y)
    other = write_run(tmp_path / "other", **{"prediction": Y, **changes})
    with pytest.raises(InputError, match=message):
        compare_runs([first, other])


def write_pair(folder: Path) -> list[Path]:
    """Two runs on a table of 7 rows, of which the standardization of one makes 2 and 3, a salt of it, one molecule.

    The test rows are 1 to 5 and 2 to 7; row 4 is bounded.
    """
    smiles = ["C", "CCN", "CC[NH3+].[Cl-]", "CO", "CF", "CS", "CCl"]
    labels = ["1.0", "2.0", "4.0", ">3.0", "5.0", "6.0", "7.0"]
    folder.mkdir()
    runs = [write_run(folder / name, Y, options={"standardize": how, "split": "random"})
            for name, how in (("drawn", None), ("parent", "parent"))]  # fmt: skip
    tested = [{1: 1.5, 2: 2.5, 3: 3.0, 4: 3.5, 5: 5.5}, {2: 3.0, 4: 3.0, 5: 5.25, 6: 6.0, 7: 7.0}]
    for run, rows in zip(runs, tested, strict=True):
        lines = [f"{row},{smiles[row - 1]},test,{labels[row - 1]},{value}" for row, value in rows.items()]
        lines = [line.replace("test,2.0", "test,3.0") if run is runs[1] else line for line in lines]
        (run / "predictions.csv").write_text("\n".join(["row,smiles,split,y,y_predicted", *lines]) + "\n")
    header = "molecule,row,smiles,split,conflicting targets,target y,averaged in row"
    lines = [header, *(f"KEY,{row},{smiles[row - 1]},test,,{labels[row - 1]},2" for row in (2, 3))]
    (runs[1] / "duplicates.csv").write_text("\n".join(lines) + "\n")
    return runs


def test_runs_of_two_standardizations_are_compared_by_measurement(tmp_path):
    """Of rows 2 to 5, by hand: errors 0.5, 1.0 and 0.5 of exact labels, against 1.0, 1.0 and 0.25."""
    runs = write_pair(tmp_path / "runs")
    compared = compare_runs(runs)
    first, second = compared["targets"]["y"]["runs"].values()
    assert compared["targets"]["y"]["n"] == 3 and compared["targets"]["y"]["too_few"] and first["bounds"]["bounds"] == 1
    assert first["value"] == pytest.approx(2 / 3) and second["value"] == pytest.approx(0.75)
    names = [str(run) for run in runs]
    assert compared["test_rows"] == {"of_runs": dict.fromkeys(names, 5), "shared": 4}
    assert compared["settings"]["different"] == {"--standardize": dict(zip(names, [None, "parent"], strict=True))}
    assert compared["settings"]["same"]["--split"] == "random"
    lines = comparison_lines(compared)
    assert lines[0] == f"different --standardize: none in {names[0]}, parent in {names[1]}" and "4 meas" in lines[2]
    assert "replicates count singly" in lines[2]
    (runs[1] / "duplicates.csv").unlink()
    with pytest.raises(InputError, match="have different test labels"):
        compare_runs(runs)
