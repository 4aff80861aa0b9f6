"""A trial in a process of its own."""

import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import slim, task_config
from graphormer_sepnorm.search import trial
from graphormer_sepnorm.search.trial import Ended, Reached, Refused, TrialProcess, is_lack_of_memory
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.training.trainer import Epoch


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[Path, Config]:
    """A prepared table of 60 molecules, and a tiny run on it."""
    folder = tmp_path_factory.mktemp("table")
    sample_table()[:60].to_csv(folder / "mols.csv", index=False)
    options = TableOptions(str(folder / "mols.csv"), ("penalized_logp",), split="random")
    config = task_config(TABLE, "mol", table_task(options), TrainConfig(epochs=2), architecture=slim)
    shape = replace(config.model, layers=1, width=16, ffn_width=16, heads=2)
    config = replace(config, model=shape)
    write_labelled(folder / "study", read_labelled(options, "mol"), config, options)
    return folder / "study" / TABLE, config


@pytest.fixture
def start(table):
    """Starts a trial with other values of the optimisation; it is ended with the test."""
    started = []

    def run(**train) -> TrialProcess:
        path, config = table
        config = replace(config, train=replace(config.train, **train))
        started.append(TrialProcess(str(path), config, choose("cpu"), threads=1))
        return started[-1]

    yield run
    for one in started:
        one.kill()


def test_a_trial_tells_of_its_epochs_and_ends(start):
    running = start()
    first = running.receive()
    assert isinstance(first, Reached) and first.epoch == 1 and first.val_metric > 0
    running.answer(True)
    assert running.receive().epoch == 2
    running.answer(True)
    assert running.receive() == Ended()


@pytest.mark.slow
def test_a_trial_that_is_told_to_stop_does(start):
    running = start(epochs=1000)
    running.receive()
    running.answer(False)
    assert running.receive() == Ended()


@pytest.mark.slow
def test_a_killed_trial_is_said_to_be(start):
    running = start(epochs=1000)
    running.receive()
    os.kill(running.process.pid, signal.SIGKILL)
    running.answer(True)
    assert running.receive() == Ended("killed by SIGKILL", by_signal=True)


@pytest.mark.slow
def test_a_trial_that_nobody_listens_to_ends_quietly(start, capfd):
    running = start(epochs=1000)
    running.receive()
    running.connection.close()
    running.process.join(60)
    assert running.process.exitcode == 0 and capfd.readouterr().err == ""


@pytest.mark.slow
def test_sigint_from_a_terminal_does_not_reach_a_trial(start):
    """Also of a server of processes that others have started, which hears SIGINT."""
    forkserver.ensure_running()
    running = start()
    running.receive()
    os.kill(running.process.pid, signal.SIGINT)
    running.answer(True)
    assert running.receive().epoch == 2


@pytest.mark.parametrize(("error", "problem"), [(InputError("loss nan"), "loss nan"), (MemoryError(), "out of memory")])
def test_a_training_that_fails_ends_with_the_reason(table, monkeypatch, error, problem):
    """In this process, with a trainer that fails in its second epoch."""

    class Failing:
        def __init__(self, *arguments):
            pass

        def epochs(self):
            yield Epoch(1, 0.5, 0.25, 1e-3, 100.0, 1.0)
            raise error

    loaded = []
    monkeypatch.setattr(trial, "Trainer", Failing)
    monkeypatch.setattr(trial, "load_split", lambda table, split, encodings: loaded.append(split))
    path, config = table
    ours, theirs = multiprocessing.Pipe()
    ours.send(True)
    trial.run_trial(theirs, str(path), config, choose("cpu"), torch.get_num_threads())
    assert (ours.recv(), ours.recv()) == (Reached(1, 0.25), Ended(problem))
    assert loaded == ["train", "val"], "a trial sees no test molecule"


@pytest.mark.slow
def test_a_training_that_cannot_begin_is_refused(start):
    message = start(start_from="nowhere").receive()
    assert isinstance(message, Refused) and "nowhere" in message.problem


def test_lack_of_memory_by_its_exceptions():
    assert is_lack_of_memory(MemoryError()) and is_lack_of_memory(torch.OutOfMemoryError())
    with pytest.raises(RuntimeError) as lacking:
        torch.empty(2**60)
    assert is_lack_of_memory(lacking.value)
    assert not is_lack_of_memory(RuntimeError("shapes do not match"))
