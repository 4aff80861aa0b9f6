import math
from dataclasses import replace

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import RECIPES
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.training.sweep import check_config, paired_difference, swept_config
from graphormer_sepnorm.training.trainer import fitted_epochs


def test_two_norms_are_compared_seed_by_seed():
    """Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), Student's t with two degrees of freedom 4.302653."""
    difference = paired_difference({"norm": "a", "test": [2.0, 4.0, 6.0]}, {"norm": "b", "test": [1.0, 2.0, 3.0]})
    assert (difference["norm"], difference["minus"], difference["mean"]) == ("a", "b", 2.0)
    assert difference["low"] == pytest.approx(2 - 4.302653 / math.sqrt(3), abs=1e-6)
    assert difference["high"] == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-6)
    assert {type(difference[name]) for name in ("mean", "low", "high")} == {float}  # of NumPy, it is printed otherwise


def test_a_recipe_that_starts_from_weights_of_other_molecules_is_refused():
    with pytest.raises(InputError, match="training starts from foundation, whose model is another one"):
        swept_config("sample", "sepnorm", 0, RECIPES["foundation"], [])


def test_a_run_with_more_epochs_for_its_molecules_is_continued(tmp_path):
    """2,000 molecules in batches of 64 are 32 updates, so 2,000 updates are 63 epochs."""

    def config_of(epochs: int):
        settings = ["train.min_updates=2000", f"train.epochs={epochs}", "train.batch_size=64"]
        return swept_config("sample", "sepnorm", 0, RECIPES["slim"], settings)

    config = config_of(2)
    fitted = replace(config, train=fitted_epochs(config.train, 2000))
    assert fitted.train.epochs == 63
    RunFolder(tmp_path).begin(fitted)
    check_config(tmp_path, config)
    with pytest.raises(InputError, match="holds a run of another recipe"):
        check_config(tmp_path, config_of(64))
