"""The learning curve: fitted to fewer molecules, judged on those outside; the limits of its cost."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report import learning
from graphormer_sepnorm.report.learning import learning_curve
from graphormer_sepnorm.report.reported import Trained
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.members.kernel import KernelMember
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.tasks import METRICS


def curve_of(fitted, molecules, labels, folds) -> dict | None:
    """The learning curve with the seed 0."""
    return learning_curve(Trained(None, fitted, molecules, labels, folds, None, SimpleNamespace(seed=0)))


@pytest.fixture(scope="module")
def kernel(labels: Labels, to_fit: ToFit) -> SimpleNamespace:
    """A model of a kernel and another member, with their out-of-fold predictions."""
    fitted = KernelMember.fit(to_fit)
    by_member = np.stack([np.zeros_like(labels.y), fitted.out_of_fold])
    members = {"forest": None, "kernel": fitted.member}
    return SimpleNamespace(model=SimpleNamespace(members=members), out_of_fold=Stacked(by_member, None, None))


def test_the_last_point_is_the_score_of_the_kernel_and_fewer_molecules_do_worse(kernel, molecules, labels, folds):
    curve = curve_of(kernel, molecules, labels, folds)
    assert curve["rows"] == [10, 20, 40] and list(curve["targets"]) == ["logP", "TPSA"]
    for place, facts in enumerate(curve["targets"].values()):
        error = kernel.out_of_fold.by_member[1][:, place] - labels.y[:, place]
        assert facts["values"][-1] == pytest.approx(np.sqrt(np.nanmean(error**2)))
        assert facts["values"][0] > facts["values"][-1]
        assert all(low < value < high for value, (low, high) in zip(facts["values"], facts["interval"], strict=True))
        low, high = facts["last_doubling"]["interval"]
        assert low < facts["last_doubling"]["difference"] == facts["values"][-1] - facts["values"][-2] < high


def test_bounds_are_learnt_and_scored(kernel, molecules, labels, folds):
    """Only the target with bounds has likelihoods, and its labels beyond the bound change what a part predicts."""
    limit = np.nanmedian(labels.y[:, 0])
    hidden, y = labels.y[:, 0] > limit, labels.y.copy()
    bounds = np.tile([-np.inf, np.inf], (*y.shape, 1))
    y[hidden, 0], bounds[hidden, 0, 0] = np.nan, limit
    curves = [curve_of(kernel, molecules, Labels(labels.task, y, each), folds)["targets"] for each in (bounds, None)]
    assert len(curves[0]["logP"]["log_likelihood"]) == 3 and "log_likelihood" not in curves[0]["TPSA"]
    assert "log_likelihood" not in curves[1]["logP"]
    assert curves[0]["logP"]["values"][0] != curves[1]["logP"]["values"][0]
    assert curves[0]["TPSA"] == curves[1]["TPSA"]


def test_a_part_is_fitted_without_the_molecules_of_its_fold(kernel, molecules, labels, folds, monkeypatch):
    fitted = []

    def watched(compared, labels, learnt):
        fitted.append(set(learnt.tolist()))
        return lambda similarities: np.zeros((len(similarities), 2))

    monkeypatch.setattr(learning, "fit_machines", watched)
    curve_of(kernel, molecules, labels, folds)
    outside = [set(learnt.tolist()) for learnt, _ in folds.parts()]
    assert [len(rows) for rows in fitted] == [10] * 3 + [20] * 3
    for number, allowed in enumerate(outside):
        assert fitted[number] < fitted[3 + number] < allowed, "the half holds the quarter"


def test_tables_that_are_too_small_or_too_costly_have_no_curve(kernel, molecules, labels, folds, monkeypatch):
    for name, value in (("LEAST_MOLECULES", 61), ("MOST_LABELS", 119)):
        with monkeypatch.context() as patch:
            patch.setattr(learning, name, value)
            assert curve_of(kernel, molecules, labels, folds) is None
    without = SimpleNamespace(model=SimpleNamespace(members={"networks": None}))
    assert curve_of(without, molecules, labels, folds) is None


def test_the_curve_of_several_classes_ends_at_the_score_of_a_model_of_the_kernel(molecules, labels, folds, to_fit):
    """The kernel predicts the classes one by one; those of a model add up to 1."""
    thirds = np.searchsorted(np.nanquantile(labels.y[:, 0], [1 / 3, 2 / 3]), np.nan_to_num(labels.y[:, 0]))
    several = Labels(TaskConfig("multiclass", "rocauc", ("low", "middle", "high")), np.eye(3)[thirds])
    fitted = KernelMember.fit(replace(to_fit, labels=several))
    values = fitted.out_of_fold / fitted.out_of_fold.sum(axis=1, keepdims=True)
    whole = SimpleNamespace(
        model=SimpleNamespace(members={"kernel": fitted.member}),
        out_of_fold=Stacked(fitted.out_of_fold[None], values, values),
    )
    (facts,) = curve_of(whole, molecules, several, folds)["targets"].values()
    assert (
        facts["values"][-1] == METRICS["rocauc"](several.y, values) != METRICS["rocauc"](several.y, fitted.out_of_fold)
    )
