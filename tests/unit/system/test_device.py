"""Devices and precisions."""

import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.analyze import analyze_run
from graphormer_sepnorm.predict.predictors import Predictor, load_embedder, load_networks
from graphormer_sepnorm.system.device import Compute, autocast, choose, computing, current, find_device
from graphormer_sepnorm.training.experiment import evaluate_run
from tests.tiny import save_tiny

NOWHERE = Compute(torch.device("meta"))  # a model moved there cannot give numbers


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)


def test_names_of_gpus(gpus, monkeypatch):
    names = ("auto", "cuda", "cuda:1", "cpu")
    assert [str(find_device(name)) for name in names] == ["cuda:0", "cuda:0", "cuda:1", "cpu"]
    with pytest.raises(InputError, match="no device cuda:2: PyTorch finds 2 CUDA GPUs, from cuda:0 on"):
        find_device("cuda:2")
    with pytest.raises(InputError, match="cuda:0 does not support bfloat16"):
        choose("auto", "bfloat16")
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert [str(find_device(name)) for name in ("auto", "cuda")] == ["cuda:1", "cuda:1"]
    with pytest.raises(InputError, match="is for one process"):
        find_device("cuda:0")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("cuda", "no device cuda:0: PyTorch finds no CUDA GPU"),
        ("cuda:3", "no device cuda:3"),
        ("mps", "no device mps"),
        ("cuda:", "unknown device"),
    ],
)
def test_a_missing_device_gives_a_sentence(monkeypatch, name, problem):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match=problem):
        find_device(name)


def test_what_is_current_ends_with_its_block():
    with computing(NOWHERE):
        assert current() is NOWHERE
        with computing(Compute(torch.device("cpu"), "bfloat16")), current().arithmetic():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        assert current() is NOWHERE
    assert current() == choose()


@pytest.mark.parametrize("precision", ["float32", "32-true", "bfloat16", "bf16-mixed"])
def test_the_numbers_of_a_precision_by_its_names(precision):
    with autocast(precision, torch.device("cpu")):
        found = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    assert found == (torch.bfloat16 if precision.startswith("bf") else torch.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("run"), featurizer="zinc", targets=("penalized_logp",))


def test_scores_and_measures_are_computed_on_the_device(run):
    with computing(NOWHERE):
        with pytest.raises(RuntimeError, match="meta"):
            evaluate_run(run)
        with pytest.raises(RuntimeError, match="meta"):
            analyze_run(run)
        assert Predictor(load_networks([run])).device == load_embedder(str(run)).device == NOWHERE.device
