"""The log of predictions."""

from dataclasses import replace

import pytest

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.side_by_side import Part, SideBySide
from graphormer_sepnorm.project.log import ancestor, earliest, log_into, read_log
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.model import TableModel
from tests.table_models import Trained
from tests.tables import records


@pytest.mark.slow
def test_a_log_has_what_the_output_has(trained: Trained, smiles, tmp_path):
    model, log = TableModel.load(trained.run.path), tmp_path / "log.csv"
    (tmp_path / "in.csv").write_text("smiles\n" + "\n".join([*smiles[60:64], "broken"]))
    for _ in range(2):
        watch = log_into(log, model, "run")
        predict_table(model, str(tmp_path / "in.csv"), tmp_path / "out.csv", answers=Answers(0.9), watch=watch)
    output, lines = records(tmp_path / "out.csv"), read_log(log)
    assert len(lines) == 8 and {line["model"] for line in lines} == {"run"}
    written = [(line["smiles"], line["predicted"], line["low"], line["high"]) for line in lines[:4]]
    assert written == [(row["smiles"], row["a"], row["a_low"], row["a_high"]) for row in output[:4]]


def test_the_earliest_prediction_of_a_molecule_counts(tmp_path):
    header = "date,model,smiles,conditions,target,predicted,low,high\n"
    dates = ["2026-02-01T00:00:00+00:00", "2026-01-31T23:00:00+00:00", "2026-01-31T23:30:00+02:00"]
    parts = enumerate(zip(dates, ["OCC", "CCO", "C(O)C"], strict=True))
    lines = [f"{date},run,{text},,a,{place},," for place, (date, text) in parts]
    (tmp_path / "log.csv").write_text(header + "\n".join([*lines, "2026-01-01T00:00:00+00:00,run,CC"]))
    found = earliest(tmp_path / "log.csv", "mol", {"run"})
    assert [line["predicted"] for line in found.values()] == ["2"] and len(read_log(tmp_path / "log.csv")) == 3
    log = "".join(f"{line},{digest}\n" for line, digest in zip(lines, ["two", "one", "one"], strict=True))
    (tmp_path / "told.csv").write_text(f"{header.strip()},digest\n{log}")
    told = earliest(tmp_path / "told.csv", "mol", {"run"}, {"two"})
    assert [line["predicted"] for line in told.values()] == ["0"], "the others are of another model of that name"
    assert earliest(tmp_path / "none.csv", "mol", {"run"}) == earliest(tmp_path / "log.csv", "mol", {"other"}) == {}


@pytest.mark.parametrize("name", ["a", "runs/a", "a-update-12", "runs/a-update-1.gsn", "/b/a.gsn"])
def test_updates_of_a_model_have_one_ancestor(name):
    assert ancestor(name) == "a"


@pytest.mark.slow
def test_models_side_by_side_are_logged_each_with_its_own_intervals(trained: Trained, smiles, tmp_path):
    model = TableModel.load(trained.run.path)
    wider = replace(model.trust.intervals, scores=model.trust.intervals.scores * 2)
    models = [model, replace(model, trust=replace(model.trust, intervals=wider))]
    both = SideBySide(tuple(map(Part, ("one", "two"), models)))
    (tmp_path / "old.csv").write_text("date,model,smiles,conditions,target,predicted,low,high\n")
    for name in ("log.csv", "old.csv"):
        log_into(tmp_path / name, both, "", {"one": "1", "two": "2"})(smiles[60:62], both.predict(smiles[60:62]))
    lines = read_log(tmp_path / "log.csv")
    assert [line.pop("digest") for line in lines] == ["1", "1", "2", "2"]
    assert [line | {"date": ""} for line in lines] == [line | {"date": ""} for line in read_log(tmp_path / "old.csv")]
    assert [(line["model"], line["target"]) for line in lines] == [("one", "a")] * 2 + [("two", "a")] * 2
    widths = [float(line["high"]) - float(line["low"]) for line in lines]
    assert widths[2:] == pytest.approx([2 * width for width in widths[:2]], rel=1e-3)


@pytest.mark.slow
def test_conditions_are_logged_by_name(conditioned: RunFolder, tmp_path):
    model = TableModel.load(conditioned.path).under({"assay": "a"})
    samples = [Sample("CCO", ("25.0",))]
    found = model.predict(samples)
    log_into(tmp_path / "log.csv", model, "run")(samples, found)
    assert read_log(tmp_path / "log.csv")[0]["conditions"] == '{"T": "25.0", "assay": "a"}'
