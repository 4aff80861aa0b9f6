"""Students of table models."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model import distill
from graphormer_sepnorm.table_model.distill import part_of
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_model.model import TableModel
from tests.table_models import LEARNT, Trained
from tests.tiny import tiny_model

MOLECULES = ["CCO", "c1ccccc1O", "CC(=O)NC"]


@pytest.fixture(scope="module")
def student(trained: Trained, smiles, tmp_path_factory):
    """A student after one epoch, and the report on it."""
    out = tmp_path_factory.mktemp("students") / "student"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distill, "TRAIN", replace(distill.TRAIN, min_updates=0))
        patch.setattr(distill, "FEWEST", 3)
        model, library = TableModel.load(trained.run.path), [*smiles[LEARNT : LEARNT + 20], "broken"]
        return out, distill.distill(model, trained.run, library, out, epochs=1)


def test_parts_of_a_student_are_its_outputs_and_the_logistic_function_of_them():
    network, config = tiny_model("mol", ("a", "b", "c"))
    config = replace(config, task=replace(config.task, mean=(1.0, -0.5, 2.0), std=(2.0, 3.0, 0.5)))
    whole = part_of(network, config, config.task).predict(MOLECULES).values
    classes = part_of(network, config, TaskConfig("classification", "rocauc", ("c", "b")))
    numbers = part_of(network, config, TaskConfig("regression", "rmse", ("b",)))
    np.testing.assert_allclose(numbers.predict(MOLECULES).values[:, 0], whole[:, 1], rtol=1e-5)
    expected = 1 / (1 + np.exp(-whole[:, [2, 1]]))
    np.testing.assert_allclose(classes.predict(MOLECULES).values, expected, rtol=1e-5)


@pytest.mark.slow
def test_a_student_predicts_as_a_table_model_does(student, trained):
    out, report = student
    assert report["unreadable"] == 1 and report["molecules"] <= LEARNT + 20 and report["difference"].keys() == {"a"}
    assert report["test"].keys() == {"student", "model", "metric"}
    found = load_model(out).predict(MOLECULES, interval=0.5, domain=True)
    assert {"a", "a_low", "a_high", "nearest", "similarity"} <= set(found)
    np.testing.assert_allclose(found.a_high - found.a_low, (found.a_high - found.a_low)[0], rtol=1e-4)
    model = TableModel.load(out)
    assert list(model.members) == ["networks"] and len(model.models) == 1
    assert model.trust.domain.smiles == TableModel.load(trained.run.path).trust.domain.smiles
