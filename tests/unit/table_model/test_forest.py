"""Forests as arrays, and a file that damage cannot turn into something else."""

import numpy as np
import pytest
import rdkit

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays
from graphormer_sepnorm.table_model import forest as forests
from graphormer_sepnorm.table_model.forest import load_forest, save_forest
from tests.damage import with_changed_bits


def test_what_cannot_be_read_has_no_prediction(features, forest):
    broken = np.full((1, features.shape[1]), np.nan, np.float32)
    found = forest.predict(np.concatenate([features[100:], broken]))
    np.testing.assert_array_equal(found[:-1], forest.predict(features[100:]))
    assert np.isnan(found[-1]).all()


def test_blocks_of_molecules_do_not_matter(features, forest, monkeypatch):
    expected = forest.predict(features)
    monkeypatch.setattr(forests, "STEPS_AT_ONCE", 3 * len(forest.roots))
    np.testing.assert_array_equal(forest.predict(features), expected)


def test_a_kept_forest_predicts_the_same(features, forest, tmp_path):
    save_forest(tmp_path / "a", forest)
    save_forest(tmp_path / "b", load_forest(tmp_path / "a", features.shape[1]))
    loaded = load_forest(tmp_path / "b", features.shape[1])
    np.testing.assert_array_equal(loaded.predict(features), forest.predict(features))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert loaded.targets == 2 and loaded.release == rdkit.__version__


def test_a_damaged_forest_is_refused(forest, tmp_path):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    whole = path.read_bytes()
    for changed in with_changed_bits(whole):
        path.write_bytes(changed)
        with pytest.raises(InputError):
            load_forest(path, 3000)
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError):
        load_forest(path, 3000)
    with pytest.raises(InputError, match="does not exist"):
        load_forest(tmp_path / "nothing", 3000)


INNER = 0  # the root of the first tree


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("right", 0), ("right", 1), ("right", -1), ("right", 10**9), ("feature", -2), ("feature", 10_000),
        ("number", np.nan), ("roots", 1),
    ],
)  # fmt: skip
def test_nodes_that_are_no_trees_are_refused_however_they_came_there(forest, tmp_path, name, value):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    arrays, facts = load_arrays(path)
    arrays[name][INNER] = value
    save_arrays(path, arrays, facts)
    with pytest.raises(InputError, match=r"do not form trees|not finite"):
        load_forest(path, 3000)


UNKNOWN = [{"kinds": ["torsions 2"]}, {"descriptors": ["descriptors 9"]}]


@pytest.mark.parametrize("facts", [{"targets": 3}, {"targets": 0}, {"targets": "2"}, {"format": 2}, *UNKNOWN])
def test_facts_that_do_not_fit_are_refused(forest, tmp_path, facts):
    path = tmp_path / "forest.safetensors"
    save_forest(path, forest)
    arrays, known = load_arrays(path)
    save_arrays(path, arrays, {**known, **facts})
    with pytest.raises(InputError):
        load_forest(path, 3000)
