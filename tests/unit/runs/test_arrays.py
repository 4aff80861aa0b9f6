import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import load_embedder
from graphormer_sepnorm.recipes import RECIPES, task_config
from graphormer_sepnorm.runs.arrays import (
    array_digest,
    checked_array,
    load_arrays,
    load_format,
    save_arrays,
    stored_facts,
)
from graphormer_sepnorm.training.finetune import starting_from
from tests.tiny import tiny_model

ARRAYS = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.array([0.5, np.nan], np.float32)}


def test_arrays_are_saved_and_loaded(tmp_path):
    path = tmp_path / "x.safetensors"
    transposed = {**ARRAYS, "a": ARRAYS["a"].T}
    save_arrays(path, transposed, {"trees": 3, "names": ["x"]})
    arrays, facts = load_arrays(path)
    assert facts == {"trees": 3, "names": ["x"]}
    assert arrays["a"].tolist() == [[0, 3], [1, 4], [2, 5]] and arrays["a"].dtype == np.int64
    np.testing.assert_array_equal(arrays["b"], ARRAYS["b"])


@pytest.mark.parametrize("place", [-1, -9])
def test_a_changed_byte_is_found(tmp_path, place):
    path = tmp_path / "x.safetensors"
    save_arrays(path, ARRAYS, {})
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        load_arrays(path)


@pytest.mark.parametrize(("name", "dtype", "ndim"), [("c", np.int64, 2), ("a", np.int32, 2), ("a", np.int64, 1)])
def test_an_array_of_another_kind_is_refused(tmp_path, name, dtype, ndim):
    assert checked_array(ARRAYS, "a", np.int64, 2, tmp_path) is ARRAYS["a"]
    with pytest.raises(InputError, match=f"it has no {np.dtype(dtype)} array {name} of {ndim} axes"):
        checked_array(ARRAYS, name, dtype, ndim, tmp_path)


def test_values_that_are_not_finite_are_refused_unless_they_have_a_meaning(tmp_path):
    assert checked_array(ARRAYS, "b", np.float32, 1, tmp_path, finite=False) is ARRAYS["b"]
    with pytest.raises(InputError, match="its array b has values that are not finite"):
        checked_array(ARRAYS, "b", np.float32, 1, tmp_path)


@pytest.mark.parametrize(
    ("number", "advice"), [(1, "install a newer graphormer_sepnorm"), (3, "train the model again")]
)
def test_another_format_is_refused_with_advice(tmp_path, number, advice):
    save_arrays(tmp_path / "x.safetensors", ARRAYS, {"format": 2})
    assert stored_facts(tmp_path / "x.safetensors") == load_format(tmp_path / "x.safetensors", 2)[1] == {"format": 2}
    with pytest.raises(InputError, match=f"has format 2, this release reads format {number}: {advice}"):
        load_format(tmp_path / "x.safetensors", number)


def test_a_digest_is_that_of_names_arrays_and_facts():
    digest = array_digest(ARRAYS, {"weight": 0.5})
    assert digest == array_digest(dict(reversed(ARRAYS.items())), {"weight": 0.5})
    changed = {**ARRAYS, "a": ARRAYS["a"] + 1}
    others = [array_digest(ARRAYS, {"weight": 0.6}), array_digest(changed, {"weight": 0.5}), array_digest({}, {})]
    assert len({digest, *others}) == 4


def test_a_shipped_table_model_has_no_single_embedding_and_starts_no_training():
    with pytest.raises(InputError, match=r"^adme combines 5 networks, a \w+, .*, so it has no single embedding: "):
        load_embedder("adme")
    recipe = RECIPES["slim"]
    config = task_config("table.csv", "mol", tiny_model("mol")[1].task, recipe.train, architecture=recipe.architecture)
    with pytest.raises(InputError, match=r"training cannot start from it: choose one network, such as foundation$"):
        starting_from(config, "adme")
