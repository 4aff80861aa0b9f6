import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import engine
from graphormer_sepnorm.library.engine import Models, compute_parts, connected
from graphormer_sepnorm.library.part_writer import Assignment, PartOptions, Selection
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


@pytest.mark.slow
def test_partitions_are_queued_at_the_scheduler_and_workers_keep_their_memory(tmp_path):
    assignments = []
    for number in range(8):
        source, part = tmp_path / f"{number}.csv", tmp_path / f"{number}.parquet"
        source.write_text("smiles\nCCO\n")
        assignments.append(Assignment(str(source), str(part), "job", "content"))
    with connected(None, workers=1) as client:
        written = {assignment.part for assignment, _ in compute_parts(client, models(), assignments)}
        queued = client.run_on_scheduler(count_queued)
        environments = client.run(dict, os.environ)
    assert written == {assignment.part for assignment in assignments}
    assert queued == 7
    assert all("MALLOC_TRIM_THRESHOLD_" not in environment for environment in environments.values())


def count_queued(dask_scheduler) -> int:
    return sum(entry.finish == "queued" for entry in dask_scheduler.transition_log)


def test_a_killed_resource_tracker_leaves_no_traces(tmp_path):
    code = """
import multiprocessing, os, signal, time
from multiprocessing import resource_tracker
from graphormer_sepnorm.library.engine import keep_tracker
locks = [multiprocessing.get_context("spawn").Lock() for _ in range(3)]
os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
time.sleep(0.5)
keep_tracker()
locks.clear()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
