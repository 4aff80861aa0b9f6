import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Annotated, ClassVar, Literal

import pytest
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch_geometric.data import Data

from graphormer_sepnorm.config import (
    FORMAT_VERSION,
    Config,
    ModelConfig,
    TaskConfig,
    TrainConfig,
    config_from_json,
    config_to_json,
    read_config,
)
from graphormer_sepnorm.encodings import ENCODINGS
from graphormer_sepnorm.encodings.base import STRICT, Encoding
from graphormer_sepnorm.encodings.shipped import Spatial
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch

MODEL = ModelConfig(atom_sizes=(5,), bond_sizes=(3,), encodings=(Spatial(max_distance=7),))
CONFIG = Config("sample", "zinc", TaskConfig("regression", "mae", ("y",)), MODEL)


def test_a_trapezoid_whose_sides_overlap_is_refused():
    with pytest.raises(InputError, match="add up to more than 1"):
        TrainConfig(schedule="trapezoid", warmup=0.3, cooldown=0.8)
    assert TrainConfig(schedule="trapezoid", warmup=0.1, cooldown=0.9).cooldown == 0.9
    assert TrainConfig(schedule="cosine", warmup=0.3, cooldown=0.8).cooldown == 0.8


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("model", "layers"), 0, "here: model.layers should be greater than or equal to 1"),
        (("model", "depth"), 12, "here: model.depth: Unexpected keyword argument"),
        (("model", "width"), 81, "here: model: width 81 is not a multiple of heads 8"),
        (("model", "norm"), "batchnorm", "here: model.norm: unknown norm 'batchnorm', choose one of sepnorm"),
        (("model", "num_tasks"), 2, "here: 2 tasks, but 1 names of targets"),
        (("train", "lr"), float("inf"), "here: train.lr should be"),
        (("format_version",), FORMAT_VERSION + 1, "install a newer graphormer_sepnorm"),
        (("format_version",), FORMAT_VERSION - 1, "only versions before 0.2.0 read: train it again"),
    ],
)
def test_invalid_configs_are_refused_with_a_sentence(place, value, sentence):
    fields = json.loads(config_to_json(CONFIG))
    inner = fields
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(InputError) as caught:
        config_from_json(json.dumps(fields), "here")
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"dataset": "sample"}'])
def test_a_file_that_is_not_a_config_is_refused_by_name(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config\.json: "):
        read_config(tmp_path / "config.json")


def test_encodings_are_unique_and_configs_are_frozen():
    with pytest.raises(InputError, match="an encoding is named twice: spatial, spatial"):
        replace(MODEL, encodings=(Spatial(), Spatial(max_distance=3)))
    with pytest.raises(FrozenInstanceError):
        CONFIG.train.lr = 1.0


def own_encoding(array: str) -> Encoding:
    @dataclass(frozen=True, config=STRICT)
    class Mine(Spatial):
        name: Literal["mine"] = "mine"
        arrays: ClassVar = {array: "pair"}

    return Mine()


@pytest.mark.parametrize(("encoding", "array"), [(kind, array) for kind in ENCODINGS.values() for array in kind.arrays])
def test_an_array_belongs_to_one_encoding(encoding, array, monkeypatch):
    monkeypatch.setitem(ENCODINGS, "mine", Spatial)
    owner = encoding()
    with pytest.raises(InputError, match=f"^the array '{array}' belongs to both {owner.name} and mine: rename one$"):
        replace(MODEL, encodings=(owner, own_encoding(array)))
    assert replace(MODEL, encodings=(own_encoding(array),))


@pytest.mark.parametrize("array", [*(field.name for field in fields(GraphBatch)), "edge_ptr", "edge_attr", "num_nodes"])
def test_an_array_has_no_name_of_a_field(array, monkeypatch):
    monkeypatch.setitem(ENCODINGS, "mine", Spatial)
    with pytest.raises(InputError, match=f"^the array '{array}' of mine has the name of a field of graphs: rename it$"):
        replace(MODEL, encodings=(own_encoding(array),))


@pytest.mark.parametrize("array", ["ring_index", "in_batch", "face", "ring", "batch_of_index"])
def test_an_array_has_no_name_that_pyg_changes(array, monkeypatch):
    """Those names are refused for which PyG's graphs have an increment or another axis."""
    monkeypatch.setitem(ENCODINGS, "mine", Spatial)
    values, graph = torch.arange(3), Data(num_nodes=3)
    if (graph.__inc__(array, values), graph.__cat_dim__(array, values)) == (0, 0):
        assert replace(MODEL, encodings=(own_encoding(array),))
        return
    with pytest.raises(InputError, match=rf"array '{array}' of mine.*: rename it$"):
        replace(MODEL, encodings=(own_encoding(array),))


def test_atoms_of_the_last_layer_count_if_something_reads_them():
    last = MODEL.layers - 1
    assert MODEL.atoms_matter_after(last - 1) and not MODEL.atoms_matter_after(last)
    assert replace(MODEL, readout="mean").atoms_matter_after(last)
    assert replace(MODEL, norm="sharenorm-batchnorm").atoms_matter_after(last)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_is_read_as_it_was_written(name):
    encoding = ENCODINGS[name]()
    assert encoding.name == name
    config = replace(CONFIG, model=replace(MODEL, encodings=(encoding,)))
    assert config_from_json(config_to_json(config), "config.json") == config


def test_class_names_are_for_each_target_of_a_classification():
    names = (("inactive", "active"),)
    assert TaskConfig("classification", "rocauc", ("a",), class_names=names).classes == names
    assert TaskConfig("classification", "rocauc", ("a", "b")).classes == (("0", "1"), ("0", "1"))
    with pytest.raises(InputError, match="2 targets of a classification, but 1 class_names"):
        TaskConfig("classification", "rocauc", ("a", "b"), class_names=names)
    three = ("low", "middle", "high")
    assert TaskConfig("multiclass", "rocauc", ("y_a", "y_b", "y_c"), class_names=(three,)).classes == (three,)
    assert TaskConfig("multiclass", "rocauc", ("y_a", "y_b")).classes == (("y_a", "y_b"),)
    assert TaskConfig("regression", "mae", ("a",)).classes == ()


def test_limits_are_kept_and_optional_and_those_that_cannot_hold_are_refused():
    task = TaskConfig("regression", "mae", ("y",), limits=((None, 2.0),))
    text = config_to_json(replace(CONFIG, task=task))
    assert config_from_json(text, "config.json").task == task
    without = json.loads(text)
    del without["task"]["limits"]
    assert config_from_json(json.dumps(without), "config.json") == CONFIG
    with pytest.raises(ValueError, match="1 targets of a regression, but 2 limits"):
        replace(task, limits=((None, 2.0), (None, None)))
    with pytest.raises(ValueError, match="a lower limit is not below the upper limit"):
        replace(task, limits=((2.0, 2.0),))


def test_what_is_no_encoding_is_refused():
    """In a file, as that of a program with an encoding of its own, and in a constructor."""
    text = config_to_json(CONFIG).replace('"spatial"', '"spatail"')
    message = "encodings.0: unknown encoding 'spatail', choose one of centrality, .*; did you mean 'spatial'?"
    with pytest.raises(InputError, match=f"here: model.{message}"):
        config_from_json(text, "here")
    with pytest.raises(InputError, match=f"^{message}"):
        replace(MODEL, encodings=({"name": "spatail"},))
    with pytest.raises(InputError, match=r"^encodings.0: this is the class of an encoding, call it: Spatial\(\)$"):
        replace(MODEL, encodings=(Spatial,))


def test_an_encoding_of_ones_own_can_be_added_and_defined_again_at_any_time(monkeypatch):
    """As by a notebook whose cell is run twice: a config that holds the earlier one can still be changed."""

    def define(smallest: int) -> type:
        @dataclass(frozen=True, config=STRICT)
        class Own(Spatial):
            name: Literal["own"] = "own"
            path: tuple[int, ...] = ()
            max_distance: Annotated[int, Field(ge=smallest)] = 40

        return Own

    first, second = define(smallest=1), define(smallest=5)
    monkeypatch.setitem(ENCODINGS, "own", first)
    config = replace(CONFIG, model=replace(MODEL, encodings=(first(max_distance=3, path=(1, 2)),)))
    assert config_from_json(config_to_json(config), "here") == config
    monkeypatch.setitem(ENCODINGS, "own", second)
    assert replace(config.model, layers=3).encodings == config.model.encodings
    again = replace(config, model=replace(MODEL, encodings=(second(path=(1, 2)),)))
    assert config_from_json(config_to_json(again), "here") == again
    with pytest.raises(InputError, match=r"model.encodings.0.max_distance should be greater than or equal to 5"):
        config_from_json(config_to_json(config), "here")
    monkeypatch.delitem(ENCODINGS, "own")
    with pytest.raises(InputError, match="unknown encoding 'own'"):
        replace(MODEL, encodings=(second(),))
