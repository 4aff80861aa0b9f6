from dataclasses import replace

import pytest

from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.training import experiment
from graphormer_sepnorm.training.optimizers import muon
from tests.robustness.tiny_run import tiny_config

UNKNOWN = "unknown optimizer 'sgd', choose one of adamw, muon"


def test_muon_updates_the_weight_matrices_of_all_blocks_and_adamw_the_rest():
    config = replace(tiny_config().model, layers=3)
    model = Network(config)
    moved, rest = muon(model, TrainConfig())
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices = {names[id(parameter)] for group in moved.param_groups for parameter in group["params"]}
    linear = ("attention.qkv", "attention.out", "ffn.up", "ffn.down")
    assert matrices == {f"blocks.{block}.{name}.weight" for block in range(3) for name in linear}
    others = [names[id(parameter)] for group in rest.param_groups for parameter in group["params"]]
    assert sorted([*matrices, *others]) == sorted(names.values())


def test_an_unknown_optimizer_ends_a_run_before_any_molecule_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "load_split", lambda *arguments: pytest.fail("read"))
    with pytest.raises(InputError, match=UNKNOWN):
        experiment.train_run(tiny_config(optimizer="sgd"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
