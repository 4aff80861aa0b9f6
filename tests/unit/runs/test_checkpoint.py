import numpy as np
import pytest
import torch
from safetensors.torch import save_file

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
from graphormer_sepnorm.runs.checkpoint import checksum, load_model, save_model
from graphormer_sepnorm.training.finetune import starting_from
from tests.tiny import save_tiny, tiny_model


def test_a_model_comes_back_bit_for_bit_with_its_facts(tmp_path):
    model, config = tiny_model()
    save_model(tmp_path / "model.safetensors", model, config, {"epoch": 7})
    found, its_config, facts = load_model(tmp_path)
    assert its_config == config and facts == {"epoch": 7} and not found.training
    assert all(torch.equal(tensor, found.state_dict()[name]) for name, tensor in model.state_dict().items())


def test_equal_models_are_equal_files(tmp_path):
    for name in ("a", "b"):
        save_tiny(tmp_path / name)
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()


def test_the_checksum_covers_names_types_shapes_values_and_texts():
    one, a = {"facts": "x"}, torch.zeros(2, 3)
    tensors = [{"a": a}, {"b": a}, {"a": a.T}, {"a": a.int()}, {"a": a + 1}, {}]
    found = [checksum(each, one) for each in tensors] + [checksum({"a": a}, texts) for texts in ({"facts": "y"}, {})]
    assert len(set(found)) == 8
    assert array_digest(ARRAYS, {"x": 1}) == array_digest(dict(reversed(ARRAYS.items())), {"x": 1})


def test_a_changed_byte_and_a_foreign_file_are_refused(tmp_path):
    path = save_tiny(tmp_path) / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="is damaged: its content does not match its checksum"):
        load_model(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(InputError, match="has no config in its header"):
        load_model(path)
    with pytest.raises(InputError, match="does not exist"):
        load_model(tmp_path / "nothing.safetensors")


ARRAYS = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.array([0.5, np.nan], np.float32)}


def test_arrays_are_saved_and_loaded(tmp_path):
    path = tmp_path / "x.safetensors"
    transposed = {**ARRAYS, "a": ARRAYS["a"].T}
    save_arrays(path, transposed, {"trees": 3, "names": ["x"]})
    arrays, facts = load_arrays(path)
    assert facts == {"trees": 3, "names": ["x"]}
    assert arrays["a"].tolist() == [[0, 3], [1, 4], [2, 5]] and arrays["a"].dtype == np.int64
    np.testing.assert_array_equal(arrays["b"], ARRAYS["b"])


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


@pytest.mark.slow
def test_a_shipped_table_model_has_no_single_embedding_and_starts_no_training():
    with pytest.raises(InputError, match=r"^adme combines 5 networks, a \w+, .*, so it has no single embedding: "):
        load_embedder("adme")
    config = task_config("table.csv", "mol", tiny_model("mol")[1].task, RECIPES["slim"])
    with pytest.raises(InputError, match=r"training cannot start from it: choose one network, such as foundation$"):
        starting_from(config, "adme")
