"""New measurements: prospective predictions, and a model of all rows."""

import math
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.project.export import export_model
from graphormer_sepnorm.project.log import log_into
from graphormer_sepnorm.project.update import PAGE, Model, bounds_as_values, bounds_words, next_folder, update_run
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_run import Plan, train_table
from graphormer_sepnorm.tables.labels import LabelledTable, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.rows import LabelledRow
from tests.table_models import Trained
from tests.tables import records

OLD, ALL = 50, 70


@pytest.fixture(scope="module")
def table(smiles, logp) -> pd.DataFrame:
    days = pd.date_range("2026-01-01", periods=ALL, freq="4D").strftime("%Y-%m-%d")
    columns = {"id": [f"m{number}" for number in range(ALL)], "smiles": smiles[:ALL], "a": logp[:ALL, 0], "day": days}
    return pd.DataFrame(columns | {"T": [25, 60] * (ALL // 2)})


@pytest.fixture(scope="module")
def old(table, trained: Trained, tmp_path_factory) -> Path:
    """The run folder of the kernel of the first rows."""
    folder = tmp_path_factory.mktemp("old")
    return train(table[:OLD], folder, trained)


def train(table: pd.DataFrame, folder: Path, trained: Trained, **options) -> Path:
    table.to_csv(folder / "in.csv", index=False)
    found = TableOptions(str(folder / "in.csv"), ("a",), **{"split": "random", **options})
    config = replace(trained.config, task=table_task(found))
    train_table(found, config, folder / "run", Plan(3, quick=True))
    return folder / "run"


def prospective(run: Path) -> list[dict[str, str]]:
    return records(run / "prospective.csv")


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}


@pytest.mark.slow
def test_an_update_is_the_model_of_all_rows_and_keeps_what_was_predicted(table, old, trained, tmp_path, command):
    before = contents(old)
    table[OLD:].to_csv(tmp_path / "new.csv", index=False, sep=";")
    result = update_run(str(old), str(tmp_path / "new.csv"), tmp_path / "next")
    assert contents(old) == before and result["new_rows"] == ALL - OLD
    ours, theirs = RunFolder(tmp_path / "next"), RunFolder(train(table, tmp_path, trained))
    assert (ours.path / "table.csv").read_bytes() == (theirs.path / "table.csv").read_bytes()
    assert (ours.path / "kernel.safetensors").read_bytes() == (theirs.path / "kernel.safetensors").read_bytes()
    assert ours.predictions.read_bytes() == theirs.predictions.read_bytes()
    expected = load_model(old).predict(list(table.smiles[OLD:]), interval=0.9, domain=True)
    lines = prospective(ours.path)
    names = {"predicted": "a", "low": "a_low", "high": "a_high", "similarity": "similarity"}
    for name, column in names.items():
        assert [float(line[name]) for line in lines] == pytest.approx(expected[column].tolist(), rel=1e-6)
    assert [float(line["measured"]) for line in lines] == table.a[OLD:].tolist()
    errors = np.abs(table.a[OLD:].to_numpy() - expected.a.to_numpy())
    (period,) = result["prospective"]["a"]
    inside = (expected.a_low.to_numpy() <= table.a[OLD:]) & (table.a[OLD:] <= expected.a_high.to_numpy())
    assert (period["n"], period["held"], period["error"]) == (ALL - OLD, inside.sum(), pytest.approx(errors.mean()))
    code, again, said = command("update", old, tmp_path / "new.csv", "--out", tmp_path / "next")
    assert code == 0 and again["prospective"] == result["prospective"] and "is finished" in said
    assert (again["value"], again["new_rows"]) == (result["value"], result["new_rows"])
    table[OLD + 1 :].to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(InputError, match="holds an update with other rows"):
        update_run(str(old), str(tmp_path / "other.csv"), tmp_path / "next")


@pytest.mark.slow
def test_known_rows_are_skipped_replicates_averaged_and_later_updates_extend_the_log(table, old, tmp_path, capsys):
    measured_again = table[2:3].assign(a=table.a[2] + 0.5)
    pd.concat([table[:2], measured_again, table[OLD : OLD + 8]]).to_csv(tmp_path / "one.csv", index=False)
    first = update_run(str(old), str(tmp_path / "one.csv"), tmp_path / "one")
    assert (first["repeated"], first["new_rows"], first["rows"]) == (2, 9, OLD + 9)
    assert "row 2 is in the table of run with the same label" in capsys.readouterr().err
    rows = pd.read_csv(tmp_path / "one" / "table.csv")
    assert rows["target a"][2] == pytest.approx(table.a[2] + 0.25) and len(rows) == OLD + 8
    assert len(pd.read_csv(tmp_path / "one" / "measurements.csv")) == OLD + 9
    kept = len(prospective(tmp_path / "one"))
    assert kept + first["known"] == 9
    export_model(tmp_path / "one", tmp_path / "one.gsn")
    table[OLD + 8 :].to_csv(tmp_path / "two.csv", index=False)
    update_run(str(tmp_path / "one.gsn"), str(tmp_path / "two.csv"), tmp_path / "two")
    lines = prospective(tmp_path / "two")
    assert lines[:kept] == prospective(tmp_path / "one") and len(lines) == kept + ALL - OLD - 8
    assert [line["model"] for line in lines] == ["run"] * kept + ["one.gsn"] * (ALL - OLD - 8)
    with pytest.raises(InputError, match="no row of new measurements"):
        update_run(str(tmp_path / "two"), str(tmp_path / "two.csv"))


@pytest.mark.slow
def test_the_earliest_logged_prediction_is_the_prospective_one(table, old, tmp_path):
    model = TableModel.load(old)
    shifted = replace(found := model.predict(list(table.smiles[OLD : OLD + 3])), values=found.values + 1)
    log_into(tmp_path / "log.csv", model, "other")(list(table.smiles[OLD:]), model.predict(list(table.smiles[OLD:])))
    log_into(tmp_path / "log.csv", model, "was/run.gsn")(list(table.smiles[OLD : OLD + 3]), shifted)
    log_into(tmp_path / "log.csv", model, "run-update-7")(list(table.smiles[OLD : OLD + 3]), found)
    table[OLD:].to_csv(tmp_path / "new.csv", index=False)
    update_run(str(old), str(tmp_path / "new.csv"), tmp_path / "next", tmp_path / "log.csv")
    lines = prospective(tmp_path / "next")
    assert [line["model"] for line in lines] == ["was/run.gsn"] * 3 + ["run"] * (len(lines) - 3)
    assert [float(line["predicted"]) for line in lines[:3]] == pytest.approx(shifted.values[:, 0].tolist(), rel=1e-6)


@pytest.mark.slow
def test_labels_in_another_unit_are_refused_unless_they_are_not(table, old, tmp_path):
    table[OLD:].assign(a=table.a[OLD:] * 1000).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="as if they were in another unit"):
        update_run(str(old), str(tmp_path / "new.csv"), tmp_path / "next")
    assert not (tmp_path / "next").exists()
    table[OLD:].rename(columns={"a": "b"}).to_csv(tmp_path / "named.csv", index=False)
    with pytest.raises(InputError, match="no column 'a'"):
        update_run(str(old), str(tmp_path / "named.csv"), tmp_path / "next")
    result = update_run(str(old), str(tmp_path / "new.csv"), tmp_path / "next", same_unit=True)
    assert result["alarms"] and all(alarm in (tmp_path / "next" / PAGE).read_text() for alarm in result["alarms"])


@pytest.mark.slow
def test_times_and_conditions_are_read_as_before(table, trained, tmp_path, capsys):
    """Of the new rows, the second has no label, and the last one, a test row, no condition: both are skipped."""
    table = table.astype({"T": object})
    table.loc[OLD + 1, "a"], table.loc[ALL - 1, "T"] = np.nan, ""
    run = train(table[:OLD], tmp_path, trained, split="time", split_column="day", feature_columns=("T",))
    table[OLD:].to_csv(tmp_path / "new.csv", index=False)
    result = update_run(str(run), str(tmp_path / "new.csv"))
    said = capsys.readouterr().err
    assert said.count("no label") == 1
    assert "row 3 of new.csv (it has no label), row 21 of new.csv (T is missing)" in said
    assert result["out"] == str(tmp_path / "run-update-1") and result["new_rows"] == ALL - OLD - 2
    months = [each["name"] for each in result["prospective"]["a"]]
    assert months == sorted(set(table.day[OLD : ALL - 1].str[:7]))
    assert prospective(tmp_path / "run-update-1")[0]["conditions"] == '{"T": "25.0"}'
    (tmp_path / "all").mkdir()
    both = train(table, tmp_path / "all", trained, split="time", split_column="day", feature_columns=("T",))
    assert (both / "predictions.csv").read_bytes() == (tmp_path / "run-update-1" / "predictions.csv").read_bytes()


@pytest.mark.slow
def test_a_classification_and_a_final_model_are_updated(table, trained, tmp_path):
    classes = table.assign(a=(table.a > table.a.median()).astype(int))
    run = train(classes[:OLD], tmp_path, trained, kind="classification", final=True)
    classes[OLD:].to_csv(tmp_path / "new.csv", index=False)
    result = update_run(str(run), str(tmp_path / "new.csv"))
    (period,) = result["prospective"]["a"]
    assert period["intervals"] == 0 and 0 <= period["error"] <= 1 and result["n"] == ALL


@pytest.mark.slow
def test_what_cannot_be_updated_is_refused(table, old, trained: Trained, tmp_path):
    table[OLD:].to_csv(tmp_path / "new.csv", index=False)
    for name, reason in {str(trained.run.member(0).path): "no run folder", str(old): "stays as it is"}.items():
        with pytest.raises(InputError, match=reason):
            update_run(name, str(tmp_path / "new.csv"), Path(name))
    with pytest.raises(InputError, match=r"there is no file .*absent\.csv"):
        update_run(str(old), str(tmp_path / "new.csv"), tmp_path / "out", log=tmp_path / "absent.csv")
    shutil.copytree(old, tmp_path / "earlier")
    (tmp_path / "earlier" / "measurements.csv").unlink()
    with pytest.raises(InputError, match=r"measurements\.csv is missing or damaged"):
        update_run(str(tmp_path / "earlier"), str(tmp_path / "new.csv"))
    with pytest.raises(InputError, match="holds another run"):
        update_run(str(old), str(tmp_path / "new.csv"), trained.run.path)


@pytest.mark.parametrize(
    ("run", "following"),
    [("a", "a-update-1"), ("b/a-update-1", "b/a-update-2"), ("a-update-9", "a-update-10"), ("m.gsn", "m-update-1")],
)
def test_updates_are_numbered(run, following):
    assert next_folder(Path(run)) == Path(following)


@pytest.mark.slow
def test_a_killed_update_continues_to_the_same_model(table, old, tmp_path):
    table[OLD:].to_csv(tmp_path / "new.csv", index=False)
    for run in ("whole", "killed"):
        shutil.copytree(old, tmp_path / run)
    arguments = [sys.executable, "-m", "graphormer_sepnorm", "update", tmp_path / "killed", tmp_path / "new.csv"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = tmp_path / "killed-update-1"
    while process.poll() is None and not (out / "prospective.csv").exists():
        time.sleep(0.02)
    time.sleep(0.5)
    process.kill()
    process.wait()
    assert not (out / PAGE).exists()
    update_run(str(tmp_path / "killed"), str(tmp_path / "new.csv"))
    update_run(str(tmp_path / "whole"), str(tmp_path / "new.csv"))
    for name in ("stack.safetensors", "kernel.safetensors", "predictions.csv", "table.csv"):
        assert (out / name).read_bytes() == (tmp_path / "whole-update-1" / name).read_bytes()
    whole = prospective(tmp_path / "whole-update-1")
    assert [line | {"model": ""} for line in prospective(out)] == [line | {"model": ""} for line in whole]


def test_bounds_among_new_measurements_are_counted_on_their_side():
    """8.5 and 8.3 are at least 8.3, and 5 is not at most 4; an exact one and one without a prediction do not count."""
    pairs = (">8.3", "8.5"), (">=8.3", "8.3"), ("<4", "5"), ("8", "9"), (">8.3", "")
    (words,) = bounds_words([{"measured": measured, "predicted": predicted} for measured, predicted in pairs])
    assert words.startswith("3 bounds") and " 2 of them" in words and bounds_words([]) == []


def test_labels_that_equal_a_bound_of_the_training_table_are_named():
    """Three labels 2.0, of which the table has ``<2.0``, and two 7.0, ``>7.0`` there; two by themselves are too few."""
    options = TableOptions("a.csv", ("a",))
    learnt = [LabelledRow(1, "C", [math.nan], bounds={0: "<2.0"}), LabelledRow(2, "CC", [math.nan], bounds={0: ">7.0"})]
    model = Model("old", None, None, options, None, LabelledTable([*learnt, LabelledRow(3, "CCC", [3.0])]))
    new = [LabelledRow(number, "C", [label]) for number, label in enumerate([2.0, 2, 2, 7, 7, 3], 1)]
    (told,) = bounds_as_values(model, new)
    assert told.startswith("a: 5 labels") and "<2.0" in told and not list(bounds_as_values(model, new[3:]))
