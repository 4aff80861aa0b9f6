"""Models by their names."""

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Predictor, load_predictor
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_model.model import TableModel
from tests.tiny import save_tiny
from tests.unit.table_model.conftest import Trained


def test_a_folder_with_a_stack_is_a_table_model_and_everything_else_networks(trained: Trained, tmp_path):
    assert isinstance(load_model([str(trained.run.path)]), TableModel)
    name = str(save_tiny(tmp_path / "old"))
    found = load_model([name])
    assert isinstance(found, Predictor)
    np.testing.assert_array_equal(found.predict(["CCO"]).values, load_predictor([name]).predict(["CCO"]).values)


def test_a_table_model_is_not_averaged_with_others(trained: Trained, tmp_path):
    name = str(save_tiny(tmp_path / "old"))
    with pytest.raises(InputError, match="name it without other models"):
        load_model([name, str(trained.run.path)])
