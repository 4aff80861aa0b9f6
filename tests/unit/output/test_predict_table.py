from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import Answers, ReadOptions
from graphormer_sepnorm.output import resumable_writer
from graphormer_sepnorm.output.predict_table import CountedColumns, models_and_source, predict_table
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.predictors import Embedder, Predictions, Predictor, stripping_salts
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.tables.writers import WRITERS
from graphormer_sepnorm.tables.writers.excel import ExcelWriter
from tests.page import tiny_service
from tests.tables import records
from tests.tiny import Trusting, tiny_model


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in.csv").write_text("error,smiles\nmine,CCO\nyours,C(\n")
    return tmp_path / "in.csv"


@pytest.fixture
def said(capsys):
    """The lines that people get of a model's predictions."""

    def lines(model: Predictor, source: str | list[str], **options) -> list[str]:
        capsys.readouterr()
        predict_table(model, source, Path("-"), **{"meanings": {}, **options})
        return capsys.readouterr().out.splitlines()

    return lines


def test_a_value_beyond_the_strongest_bound_has_a_range_of_percentiles(tmp_path, said):
    """A fifth of the labels is above -100: a prediction above it is above the others, and possibly above all."""
    service, bounds = tiny_service(tmp_path), np.tile([-np.inf, np.inf], (200, 1, 1))
    bounds[160:, 0, 0] = -100
    rows = TrainingRows.of(np.array([[-200.0]] * 160 + [[np.nan]] * 40), bounds)
    predictor = Trusting(service.predictor.models, trust=replace(service.predictor.trust, rows=rows))
    predict_table(predictor, ["CCO"], tmp_path / "out.csv", answers=Answers(domain=True))
    (found,) = records(tmp_path / "out.csv")
    columns = ("logp_percentile", "logp_percentile_low", "logp_percentile_high")
    assert [float(found[name]) for name in columns] == [90, 80, 100]
    assert "percentile 80 to 100" in said(predictor, ["CCO"], answers=Answers(domain=True))[1]


def test_lines_for_people(tmp_path, said):
    service = tiny_service(tmp_path)
    rows = TrainingRows.of(np.full((200, 1), 1.5))
    predictor = Trusting(service.predictor.models, trust=replace(service.predictor.trust, rows=rows))
    result = predict_table(predictor, ["CCO", "C[C"], tmp_path / "out.csv", answers=Answers(0.9, True))
    row, _ = records(tmp_path / "out.csv")
    lines = said(predictor, ["CCO", "C[C"], answers=Answers(0.9, True))
    value, low, high = (shown(float(row[name]), 1) for name in ("logp", "logp_low", "logp_high"))
    assert result["rows"] == 2 and result["unreadable"] == 1
    assert lines[0] == "CCO" and lines[1].startswith(f"  logp        {value}  ({low} to {high})  percentile ")
    assert lines[1].endswith(", nearest 1.5") and lines[2] == f"  nearest     {row['nearest']}"
    assert lines[-2:] == ["C[C", "  error  'C[C' is not a valid SMILES: a square bracket is not closed."]
    described = said(predictor, ["CCO"], meanings={"logp": {"description": "log10 of P"}})
    assert described == ["CCO", f"  logp  {value}  std {shown(float(row['logp_std']), 1)}  log10 of P"]


def test_lines_begin_with_the_name_of_a_row_and_show_a_censored_label(tmp_path, said):
    model, known = tiny_model(), ["CCO", "CCN"]
    embeddings = Embedder(*model).compute(read_molecules("ogb", known)).values
    rows = TrainingRows.of(np.array([[np.nan], [1.5]]), np.array([[[-np.inf, -6.5]], [[-np.inf, np.inf]]]))
    trust = Trust(fit_domain(known, embeddings + np.float32(1e-6)), rows=rows)
    (tmp_path / "in.csv").write_text("SMILES,Compound ID\nCCO,c 1\n")
    lines = said(Trusting([model], trust=trust), str(tmp_path / "in.csv"), answers=Answers(domain=True))
    assert lines[0] == "c 1  CCO" and lines[1].endswith("nearest <-6.5")
    assert ["cls_distance", "0.00"] in [line.split() for line in lines]


def test_a_molecule_of_the_training_table_is_named_as_such(said):
    model = Trusting([tiny_model()], trust=Trust(fit_domain(["CCO", "CCN"])))
    remark = "  in the training table: nearest is what was measured for this molecule"
    for smiles, count in (("OCC", 1), ("CCCO", 0), ("C[C", 0)):
        assert said(model, [smiles], answers=Answers(domain=True)).count(remark) == count


def test_without_a_readable_row_an_output_stays_and_text_after_a_smiles_is_named(tmp_path, capsys):
    model, out = Predictor([tiny_model()]), tmp_path / "out.csv"
    for smiles, unreadable in ((["CCO ethanol", "50-78-2", "CCN"], 1), (["50-78-2", "CCO and CCN"], 2)):
        (tmp_path / "in.csv").write_text("\n".join(["smiles", *smiles]))
        if unreadable == len(smiles):
            with pytest.raises(InputError, match="no row has a readable molecule in the column 'smiles'"):
                predict_table(model, str(tmp_path / "in.csv"), out)
        else:
            assert predict_table(model, str(tmp_path / "in.csv"), out)["unreadable"] == unreadable
            assert "row 2 (CCO ethanol)" in capsys.readouterr().err
    assert len(records(out)) == 3 and len(list(tmp_path.iterdir())) == 2


def test_another_suffix_is_refused_before_anything_is_written(table, tmp_path):
    with pytest.raises(InputError, match=r"^a table is written as \.csv, .*, \.sdf, not as '\.npz'"):
        predict_table(Predictor([tiny_model()]), str(table), tmp_path / "out.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize(
    ("arguments", "models", "source"),
    [
        (["m", "in.csv"], ["m"], "in.csv"),
        (["m", "missing.csv"], ["m"], "missing.csv"),
        (["m", "other/model", "-"], ["m", "other/model"], "-"),
        (["m", "C"], ["m"], ["C"]),
        (["m", "C" * 300], ["m"], ["C" * 300]),  # longer than the name of a file can be
        (["m", "F/C=C/F", "CCO ethanol"], ["m"], ["F/C=C/F", "CCO ethanol"]),
        (["m", "zinc", "C", "CC"], ["m", "zinc"], ["C", "CC"]),
        (["m", "run", "C"], ["m", "run"], ["C"]),
        (["C", "C"], ["C"], ["C"]),
    ],
)
def test_what_is_a_model_what_a_table_and_what_a_smiles(table, monkeypatch, arguments, models, source):
    monkeypatch.chdir(table.parent)
    (table.parent / "run").mkdir()
    assert models_and_source(arguments) == (models, source)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["in.csv"], "name a model and then an input"),
        (["m", "medium=water"], "medium=water is not readable as SMILES; if it is a condition, write --condition"),
        (["m", "C", "zinc", "C("], r"C\( is neither a file nor readable as SMILES: 'C\(' is not a valid SMILES"),
        (["m", "in.cvs"], r"^there is no file in\.cvs; did you mean in\.csv\?$"),
        (["m", "CC(=O)[O-].[Na"], "is neither a file nor readable as SMILES"),
        (["m", "none/in.cvs"], "is neither a file nor readable as SMILES"),
        (["m", "inn(csv"], "is neither a file nor readable as SMILES"),
    ],
)
def test_what_is_none_of_them_is_named(table, monkeypatch, arguments, sentence):
    monkeypatch.chdir(table.parent)
    with pytest.raises(InputError, match=sentence):
        models_and_source(arguments)


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_finished_output_stays_as_it_is(table, tmp_path, capsys, monkeypatch, suffix):
    predictor, out = Predictor([tiny_model()]), tmp_path / f"out{suffix}"
    first = predict_table(predictor, str(table), out)
    before = out.stat().st_mtime_ns
    monkeypatch.setattr(predictor, "compute", None)
    capsys.readouterr()
    result = predict_table(predictor, str(table), out, reading=ReadOptions(resume=True))
    said = f"{out} is finished, with 2 rows; without --resume it is computed again\n"
    assert capsys.readouterr().err == said and out.stat().st_mtime_ns == before
    assert result == first and result["unreadable"] == 1 and list(result["errors"].values()) == [1]


def test_a_finished_output_of_an_sdf_with_a_smiles_of_its_own_is_known(tmp_path, capsys):
    molecule = Chem.MolFromSmiles("CCO")
    molecule.SetProp("SMILES", "OCC")
    with Chem.SDWriter(str(tmp_path / "in.sdf")) as writer:
        writer.write(molecule)
    predictor, out = Predictor([tiny_model()]), tmp_path / "out.csv"
    predict_table(predictor, str(tmp_path / "in.sdf"), out)
    predict_table(predictor, str(tmp_path / "in.sdf"), out, reading=ReadOptions(resume=True))
    assert f"{out} is finished, with 1 row;" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["rows", "columns", "options", "model", "salts", "text", "cache"])
def test_a_finished_output_of_another_job_is_computed_again(table, tmp_path, capsys, change):
    predictor, out = Predictor([tiny_model()]), tmp_path / "out.csv"
    predict_table(predictor, str(table), out)
    before, answers = out.read_bytes(), Answers(properties=change == "options")
    if change == "rows":
        table.write_text(table.read_text() + "x,CC\n")
    elif change == "columns":
        table.write_text(table.read_text().replace("smiles", "SMILES"))
    elif change == "text":
        out.write_bytes(b"notes")
    elif change == "model":
        predictor = Predictor([tiny_model(seed=1)])
    elif change == "salts":
        stripping_salts(predictor)
    else:
        resumable_writer.finished_record(out).unlink(missing_ok=change == "options")
    predict_table(predictor, str(table), out, ReadOptions(resume=True), answers)
    assert (out.read_bytes() == before) == (change in ("salts", "text", "cache"))
    assert "is finished" not in (said := capsys.readouterr().err) and f"replaced {out}" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_reasons_are_counted_by_kind_also_of_an_interrupted_call(tmp_path, monkeypatch):
    """Rings 1 and 2 are not closed for one reason; the second chunk of two rows is first interrupted."""
    (tmp_path / "in.csv").write_text("smiles\nC1CC\nCC2C\n\nCCO\n")
    predictor, out = Predictor([tiny_model()]), tmp_path / "out.csv"
    monkeypatch.setattr(resumable_writer, "molecules_at_once", lambda device: 2)
    whole = predict_table(predictor, str(tmp_path / "in.csv"), out)
    assert list(whole["errors"].values()) == [2, 1] and whole["unreadable"] == 3

    def stop(smiles, predictions):
        if len(smiles) == 2 and smiles[1] == "CCO":
            raise KeyboardInterrupt

    other = {"reading": ReadOptions(resume=True), "watch": stop}
    with pytest.raises(KeyboardInterrupt):
        predict_table(predictor, str(tmp_path / "in.csv"), tmp_path / "two.csv", **other)
    again = predict_table(predictor, str(tmp_path / "in.csv"), tmp_path / "two.csv", reading=ReadOptions(resume=True))
    assert again == {**whole, "output": str(tmp_path / "two.csv")}


def test_more_rows_than_a_sheet_has_are_refused_and_leave_nothing(table, tmp_path, monkeypatch):
    monkeypatch.setattr(ExcelWriter, "most_rows", 1)
    with pytest.raises(InputError, match="a sheet has at most 1 rows"):
        predict_table(Predictor([tiny_model()]), str(table), tmp_path / "out.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_workbook_says_what_predicted_its_columns_in_a_second_sheet(table, tmp_path):
    out, model = tmp_path / "out.xlsx", tiny_service(tmp_path).predictor
    predict_table(model, str(table), out, answers=Answers(0.9), about=[("model", "=mine"), ("digest", "0123")])
    first, second = pd.read_excel(out, sheet_name=None, header=None).values()
    assert first[1].tolist()[:2] == ["error", "mine"] and second[0].tolist()[:3] == ["model", "digest", "logp"]
    assert second[1].tolist()[:2] == ["=mine", "0123"] and "90 %" in second[1].iloc[-1]
    assert predict_table(model, str(out), tmp_path / "again.csv")["rows"] == 2


def test_values_and_lower_bounds_below_zero_are_counted_where_no_label_is():
    """Half a width is 4.5; the labels of b include one below 0, which makes its negative predictions plausible."""
    errors, zeros = np.tile(np.arange(1, 10)[:, None] / 2, 2), np.zeros((9, 2))
    rows = TrainingRows.of(np.array([[0.5, 1], [3, -1], [np.nan, 2]]))
    trust = Trust(fit_domain(["CCO", "CCN", "CCC"]), fit_intervals(errors, zeros, zeros), rows=rows)
    columns = CountedColumns(Trusting([tiny_model(targets=("a", "b"))], trust=trust), Answers(0.9))
    values = np.array([[-0.1, -9], [0.1, -9], [4.6, -9], [np.nan, np.nan]])
    missing = "The condition pH is missing and read as 7.25, the median."
    for part in (values[:3], values[3:]):
        columns.cells(Predictions(part, 0 * part, [""] * len(part), [missing] * len(part)), [""] * len(part))
    counts = {"unfamiliar": {"rows": 0}, "below_zero": {"a": 1, "a_low": 2}, "missing_conditions": {missing: 4}}
    assert columns.remarks == counts
