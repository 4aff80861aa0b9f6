from types import SimpleNamespace

import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import engine
from graphormer_sepnorm.library.engine import Models, connected
from graphormer_sepnorm.library.part_writer import PartOptions, Selection
from graphormer_sepnorm.predict.predictors import Predictor
from tests.tiny import tiny_model


def models() -> Models:
    return Models(Predictor([tiny_model()]), PartOptions(Selection("logp"), precision="bfloat16"), "cpu", "name")


def worker(threads: int) -> SimpleNamespace:
    return SimpleNamespace(address="tcp://there:1", state=SimpleNamespace(nthreads=threads))


def test_a_worker_uses_the_requested_device_and_precision():
    plugin = models()
    plugin.setup(worker(1))
    assert (plugin.compute.device, plugin.compute.precision) == (torch.device("cpu"), "bfloat16")
    assert plugin.predictor.targets == ("logp",)


def test_workers_with_another_version_or_setup_are_reported(monkeypatch):
    with pytest.raises(InputError, match=r"tcp://there:1 has 8 threads: start workers with --nthreads 1"):
        models().setup(worker(8))
    plugin = models()
    monkeypatch.setattr(engine, "__version__", "0.0")
    with pytest.raises(InputError, match=f"tcp://there:1 has version 0.0: install {plugin.version} there"):
        plugin.setup(worker(1))


def test_an_address_without_a_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr(engine, "SECONDS_TO_CONNECT", 0.2)
    with (
        pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        connected("tcp://127.0.0.1:9", 1),
    ):
        pass
