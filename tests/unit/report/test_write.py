"""A report as a whole."""

import json
import re
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report import write
from graphormer_sepnorm.report.page import Section
from graphormer_sepnorm.report.reported import Trained as Whole
from graphormer_sepnorm.report.sections import SECTIONS
from graphormer_sepnorm.report.write import facts_out_of_fold
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.tables.options import TableOptions
from tests.table_models import Trained
from tests.unit.report.conftest import reported

WITHOUT = SimpleNamespace(models=[])  # a member without networks
TITLES = (
    "Scores", "Predictions", "Learning curve", "Data and split", "Intervals", "Distance to the training molecules",
    "Worst predictions", "Atom contributions", "Training", "How to use the model",
    "Glossary",
)  # fmt: skip


def test_a_report_has_every_section_in_its_order(trained: Trained):
    report = trained.run.report.read_text()
    assert tuple(re.findall("<h2>(.*)</h2>", report)) == TITLES
    assert len(TITLES[:-1]) + 4 == len(SECTIONS), (
        "no two of these molecules are matched pairs or similar, or replicates, and there are no times"
    )
    facts, trust = trained.result["targets"]["a"], trained.result["trust"]
    for member in MEMBERS:
        assert f"only the {member}" in report and f"{facts['scores'][member]['mae']:.3f}" in report
    low, high = facts["interval"]["stack"]
    assert f"{low:.3f} to {high:.3f}" in report
    assert "mean training label" in report and f"{100 * trust['coverage']['0.5']['a']:.0f} %" in report
    assert "data:image/png" not in report


def test_the_report_appears_before_sections_that_take_long(monkeypatch):
    def quick(page):
        return Section("quick")

    def late(page):
        return Section("late")

    monkeypatch.setattr(write, "SECTIONS", (late, quick))
    monkeypatch.setattr(write, "LATE", {late})
    for name in ("summary", "cards", "notes", "verdicts", "hero"):
        monkeypatch.setattr(write, name, lambda page: ())
    first, whole = write.pages_of(reported({"targets": {}}, options={"title": "Kinase"}))
    assert first.title == whole.title == "Kinase"
    assert [section.title for section in first.sections] == ["quick", "Glossary"]
    assert [section.title for section in whole.sections] == ["late", "quick", "Glossary"]


def test_each_test_molecule_is_a_point_with_its_values(trained: Trained):
    report = trained.run.report.read_text()
    tested = trained.labelled.of_split("test")
    for row in tested:
        assert report.count(f"<title>row {row.number}\n{escape(row.smiles)}\nmeasured ") == 2
    assert report.count(" % interval ") >= len(tested)


def test_a_molecule_has_one_name_and_one_prediction_in_all_sections(trained: Trained):
    report = trained.run.report.read_text()
    number, predicted = re.findall(r"<figcaption>row (\d+): a = (-?[0-9.]+)</figcaption>", report)[0]
    assert re.search(rf"<title>row {number}\n.*\nmeasured .*\npredicted {predicted}\n", report)


def test_the_learning_curve_is_kept(trained: Trained):
    curve = json.loads(trained.run.test.read_text())["learning_curve"]
    assert curve == trained.result["learning_curve"]
    learnt = 60 - trained.result["n"]
    assert curve["rows"][-1] == pytest.approx(learnt / 2, abs=1), "half of them are outside each of two folds"
    assert curve["targets"]["a"]["values"][-1] == pytest.approx(trained.result["out_of_fold"]["kernel"]["mae"])


def scores_of(fitted: FittedTable, labels: Labels, folds: Folds) -> dict:
    options = TableOptions("a.csv", ("a",))
    return facts_out_of_fold(Whole(None, fitted, None, labels, folds, None, options), {})["out_of_fold"]


def test_scores_out_of_fold_are_of_the_rows_that_were_predicted():
    y = np.array([[1.0], [2], [5]])
    member = np.array([[[np.nan], [3], [5]]])
    model = TableModel(TaskConfig("regression", "mae", ("a",)), "mol", {"kernel": WITHOUT}, np.ones((1, 1)))
    fitted = FittedTable(model, Stacked(member, member[0], member[0]), {})
    found = scores_of(fitted, Labels(model.task, y), Folds(np.array([-1, 0, 0])))
    assert found["kernel"]["mae"] == found["stack"]["mae"] == pytest.approx(0.5)
    bounds = np.array([[[-np.inf, np.inf]], [[-np.inf, 2]], [[-np.inf, np.inf]]])
    bounded = Labels(model.task, np.array([[1.0], [np.nan], [5]]), bounds)
    found = scores_of(fitted, bounded, Folds(np.array([-1, 0, 0])))
    assert found["stack"]["bounds"]["a"]["bounds"] == 1 and found["stack"]["bounds"]["a"]["right_side"] == 0
    assert found["kernel"]["bounds"] == found["stack"]["bounds"] and found["kernel"]["mae"] == 0


def test_scores_out_of_fold_have_the_metric_of_the_task_even_if_it_is_not_usually_reported():
    y = np.array([[1.0], [0]])
    task = TaskConfig("classification", "logloss", ("a",))
    model = TableModel(task, "mol", {"kernel": WITHOUT}, np.ones((1, 1)))
    fitted = FittedTable(model, Stacked(y[None] / 2 + 0.25, y / 2 + 0.25, y), {})
    found = scores_of(fitted, Labels(task, y), Folds(np.array([0, 1])))
    assert found["kernel"]["logloss"] == pytest.approx(-np.log(0.75)) and found["kernel"]["rocauc"] == 1


def test_the_only_member_of_a_model_of_several_classes_has_the_score_of_the_model():
    """Its predictions do not add up to 1, and rank the molecules differently as long as they do not."""
    y = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    member = np.array([[0.2, 0.1], [0.5, 0.5], [0.6, 0.1], [0.9, 0.8]])
    task = TaskConfig("multiclass", "rocauc", ("x", "y"))
    model = TableModel(task, "mol", {"kernel": WITHOUT}, np.ones((1, 2)))
    values = member / member.sum(axis=1, keepdims=True)
    fitted = FittedTable(model, Stacked(member[None], values, values), {})
    found = scores_of(fitted, Labels(task, y), Folds(np.array([0, 1, 0, 1])))
    assert found["kernel"] == found["stack"] and found["stack"]["rocauc"] == 1
