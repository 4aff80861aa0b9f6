import json
from dataclasses import replace

import pytest

from graphormer_sepnorm.config import FORMAT_VERSION, Config, TrainConfig, config_from_json, config_to_json
from graphormer_sepnorm.encodings import ENCODINGS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.layers.readouts import READOUTS
from graphormer_sepnorm.recipes import best, dataset_config
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.runs.zoo import resolve_model


@pytest.fixture
def run() -> Config:
    return dataset_config("sample", TrainConfig(), architecture=best)


def written_and_read(run: Config) -> Config:
    return config_from_json(config_to_json(run), "config.json")


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_is_read_as_it_was_written(run, name):
    encoding = ENCODINGS[name]()
    assert encoding.name == name
    config = replace(run, model=replace(run.model, encodings=(encoding,)))
    assert written_and_read(config) == config


@pytest.mark.parametrize("field, registry", [("norm", NORMS), ("readout", READOUTS)])
def test_every_norm_and_readout_is_read_as_it_was_written(run, field, registry):
    for name in registry:
        config = replace(run, model=replace(run.model, **{field: name}))
        assert written_and_read(config) == config


def in_format_1(run: Config, encodings: object) -> str:
    fields = json.loads(config_to_json(run))
    fields["model"] = {**fields["model"], "encodings": encodings, "messages": False, "degree_scaling": False}
    return json.dumps({**fields, "format_version": 1})


def test_what_were_encodings_in_format_1_are_fields_of_the_model(run):
    encodings = [
        {"name": "bonds", "num_bond_types": 5},
        {"name": "edge", "max_hops": 7, "num_bond_types": 5},
        {"name": "degree_scaling"},
        {"name": "rings", "max_size": 9},
    ]
    config = config_from_json(in_format_1(run, encodings), "config.json")
    kept = (ENCODINGS["edge"](max_hops=7), ENCODINGS["rings"](max_size=9))
    assert config == replace(run, model=replace(run.model, encodings=kept, messages=True, degree_scaling=True))
    assert config.format_version == FORMAT_VERSION
    assert written_and_read(config) == config


def test_a_config_of_format_1_without_them_has_neither(run):
    model = config_from_json(in_format_1(run, [{"name": "spatial"}]), "config.json").model
    assert not model.messages and not model.degree_scaling


@pytest.mark.parametrize(
    "encodings", [None, "bonds", [1], [["bonds"]], [{}], [{"name": ["bonds"]}], [{"name": "bond"}]]
)
def test_encodings_that_format_1_never_had_are_refused(run, encodings):
    with pytest.raises(InputError, match=r"config\.json: model\.encodings"):
        config_from_json(in_format_1(run, encodings), "config.json")


@pytest.mark.parametrize("text", ["[]", '{"model": 1}', '{"format_version": 1, "n": ' + "1" * 5000 + "}"])
def test_what_is_no_config_is_refused(text):
    with pytest.raises(InputError, match=r"config\.json"):
        config_from_json(text, "config.json")


def test_shipped_weights_pass_messages():
    assert load_model(resolve_model("zinc-subset"))[1].model.messages
