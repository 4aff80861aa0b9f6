import pytest
import torch
from safetensors.torch import save_file

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import checksum, load_model, save_model
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


def test_the_checksum_covers_names_types_shapes_and_texts():
    one = checksum({"a": torch.zeros(2, 3)}, {"config": "x"})
    others = [
        checksum({"b": torch.zeros(2, 3)}, {"config": "x"}),
        checksum({"a": torch.zeros(3, 2)}, {"config": "x"}),
        checksum({"a": torch.zeros(2, 3, dtype=torch.int32)}, {"config": "x"}),
        checksum({"a": torch.zeros(2, 3)}, {"config": "y"}),
        checksum({"a": torch.zeros(2, 3)}, {"facts": "x"}),
    ]
    assert len({one, *others}) == 6


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
