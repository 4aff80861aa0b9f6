"""A trial in a process of its own."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import optuna
import psutil
import pytest
import torch

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import slim, task_config
from graphormer_sepnorm.search import trial
from graphormer_sepnorm.search.study import open_study, values_reached
from graphormer_sepnorm.search.trial import SearchOver, TrialKilled, TrialLost, TrialProcesses, is_lack_of_memory
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


class Running:
    """A trial with other values of the optimisation, and the processes that train it."""

    def __init__(self, table: tuple[Path, Config], storage: Path, **train):
        path, config = table
        self.config = replace(config, train=replace(config.train, **train))
        self.study = open_study(storage, self.config)
        self.processes = TrialProcesses(path, storage, choose("cpu"), 1, 1)
        self.trial = None

    def train(self, seconds: float | None = None) -> list[float]:
        self.trial = self.study.ask()
        self.processes.train(self.trial, self.config, seconds)
        return values_reached(self.study, self.trial.number)

    def process(self) -> psutil.Process:
        """The process that trains, after its first epoch."""
        while self.trial is None or not values_reached(self.study, self.trial.number):
            threading.Event().wait(0.01)
        (server,) = (child for child in psutil.Process().children() if child.children())
        (process,) = server.children()
        return process


@pytest.fixture
def start(table, tmp_path):
    """Starts what trains a trial; it is ended with the test."""
    started = []

    def run(**train) -> Running:
        started.append(Running(table, tmp_path / "study.db", **train))
        return started[-1]

    yield run
    for one in started:
        one.processes.give_up()


def test_the_epochs_of_a_trial_are_in_the_study(start):
    reached = start(epochs=2).train()
    assert len(reached) == 2 and min(reached) > 0


@pytest.mark.slow
def test_a_trial_below_the_median_ends_early(start):
    running = start(epochs=4)
    for _ in range(5):
        better = optuna.trial.create_trial(value=-1.0, intermediate_values=dict.fromkeys(range(1, 5), -1.0))
        running.study.add_trial(better)
    assert len(running.train()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [None, 1.0])
def test_a_trial_that_is_given_up_ends(start, seconds):
    running = start(epochs=100_000)
    with ThreadPoolExecutor(1) as thread:
        training = thread.submit(running.train, seconds)
        process = running.process() if seconds is None else None
        if process:
            running.processes.give_up()
        with pytest.raises(SearchOver):
            training.result()
    assert process is None or not process.is_running()


def test_a_killed_trial_is_said_to_be_and_sigint_does_not_reach_it(start):
    """Also of a server of processes that others have started, which hears SIGINT."""
    forkserver.ensure_running()
    running = start(epochs=100_000)
    with ThreadPoolExecutor(1) as thread:
        training = thread.submit(running.train)
        process = running.process()
        os.kill(process.pid, signal.SIGINT)
        reached = len(values_reached(running.study, running.trial.number))
        while len(values_reached(running.study, running.trial.number)) < reached + 2:
            assert not training.done()
            threading.Event().wait(0.01)
        process.kill()
        with pytest.raises(TrialKilled, match="killed by SIGKILL"):
            training.result()


@pytest.mark.slow
def test_a_training_that_cannot_begin_is_refused(start):
    with pytest.raises(InputError, match="nowhere"):
        start(start_from="nowhere").train()


class TwoEpochs:
    """A trainer that fails in its third epoch."""

    error: Exception

    def __init__(self, *arguments):
        pass

    def epochs(self):
        for number in (1, 2):
            yield Epoch(number, 0.5, 0.25, 1e-3, 100.0, 1.0)
        raise self.error


@pytest.fixture
def train_here(table, tmp_path, monkeypatch):
    """Trains in this process with ``TwoEpochs``; gives the metrics that are in the study."""

    def run(error: Exception, is_searching: bool = True) -> list[float]:
        path, config = table
        config = replace(config, train=replace(config.train, epochs=10))
        TwoEpochs.error, loaded = error, []
        monkeypatch.setattr(trial, "Trainer", TwoEpochs)
        monkeypatch.setattr(trial, "load_split", lambda table, split, encodings: loaded.append(split))
        search = SimpleNamespace(is_alive=lambda: is_searching)
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: search)
        study = open_study(tmp_path / "study.db", config)
        number = study.ask().number
        trial_id = study.get_trials()[number]._trial_id
        try:
            trial.train_trial(path, tmp_path / "study.db", choose("cpu"), torch.get_num_threads(), config, trial_id)
        finally:
            assert loaded == ["train", "val"], "a trial sees no test molecule"
            run.reached = values_reached(study, number)
        return run.reached

    return run


@pytest.mark.parametrize(("error", "problem"), [(InputError("loss nan"), "loss nan"), (MemoryError(), "out of memory")])
def test_a_training_that_fails_ends_with_the_reason(train_here, error, problem):
    with pytest.raises(TrialLost, match=problem):
        train_here(error)
    assert train_here.reached == [0.25, 0.25]


def test_a_trial_ends_when_its_search_is_no_more(train_here):
    assert train_here(AssertionError(), is_searching=False) == [0.25]


def test_lack_of_memory_by_its_exceptions():
    assert is_lack_of_memory(MemoryError()) and is_lack_of_memory(torch.OutOfMemoryError())
    with pytest.raises(RuntimeError) as lacking:
        torch.empty(2**60)
    assert is_lack_of_memory(lacking.value)
    assert not is_lack_of_memory(RuntimeError("shapes do not match"))
