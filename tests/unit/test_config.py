import json
from dataclasses import FrozenInstanceError, replace

import pytest
from pydantic import ValidationError

from graphormer_sepnorm.config import (
    FORMAT_VERSION,
    Config,
    ModelConfig,
    TaskConfig,
    TrainConfig,
    config_from_json,
    config_to_json,
    num_bond_types,
    read_config,
)
from graphormer_sepnorm.encodings.spatial import Spatial
from graphormer_sepnorm.errors import InputError

MODEL = ModelConfig(atom_sizes=(5,), bond_sizes=(3,), encodings=(Spatial(max_distance=7),))
CONFIG = Config("sample", "zinc", TaskConfig("regression", "mae", ("y",)), MODEL)


def test_a_config_is_what_its_json_says():
    assert config_from_json(config_to_json(CONFIG), "here") == CONFIG


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("model", "layers"), 0, "here: model.layers: Input should be greater than or equal to 1"),
        (("model", "layers"), "12", "here: model.layers: Input should be a valid integer"),
        (("model", "depth"), 12, "here: model.depth: Unexpected keyword argument"),
        (("model", "width"), 81, "here: model: width 81 is not a multiple of heads 8"),
        (("model", "norm"), "batchnorm", "here: model.norm: unknown norm 'batchnorm', choose one of sepnorm"),
        (("model", "readout"), "max", "here: model.readout: unknown readout 'max', choose one of cls"),
        (("model", "num_tasks"), 2, "here: 2 tasks, but 1 names of targets"),
        (("train", "lr"), float("inf"), "here: train.lr: Input should be"),
        (
            ("train", "frozen_layers"),
            1,
            "here: train: layers can be frozen only when training starts from a checkpoint",
        ),
        (("task", "std"), [0.0], "here: task.std.0: Input should be greater than 0"),
        (("format_version",), FORMAT_VERSION + 1, "install a newer graphormer_sepnorm"),
    ],
)
def test_what_a_config_cannot_be_is_a_sentence(place, value, sentence):
    fields = json.loads(config_to_json(CONFIG))
    inner = fields
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(InputError) as caught:
        config_from_json(json.dumps(fields), "here")
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"dataset": "sample"}'])
def test_what_is_no_config_is_refused_by_its_name(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config\.json: "):
        read_config(tmp_path / "config.json")


def test_a_config_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        read_config(tmp_path / "config.json")


def test_an_encoding_is_named_once_and_a_config_never_changes():
    with pytest.raises(ValidationError, match="an encoding is named twice: spatial, spatial"):
        replace(MODEL, encodings=(Spatial(), Spatial(max_distance=3)))
    with pytest.raises(FrozenInstanceError):
        CONFIG.train.lr = 1.0


def test_atoms_of_the_last_layer_count_where_something_reads_them():
    last = MODEL.layers - 1
    assert MODEL.atoms_count_after(last - 1) and not MODEL.atoms_count_after(last)
    assert replace(MODEL, readout="mean").atoms_count_after(last)
    assert replace(MODEL, norm="sharenorm-batchnorm").atoms_count_after(last)


def test_bond_types_are_combinations():
    assert num_bond_types((5, 6, 2)) == 60


def test_a_train_config_starts_as_the_readme_says():
    assert (TrainConfig().epochs, TrainConfig().batch_size, TrainConfig().seed) == (20, 64, 0)
