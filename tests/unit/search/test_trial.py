"""A trial, in this process and in a separate one."""

import os
import signal
import time
from dataclasses import replace
from multiprocessing import forkserver
from types import SimpleNamespace

import optuna
import pytest
import torch
from optuna import TrialPruned

from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import slim, task_config
from graphormer_sepnorm.search import study as module
from graphormer_sepnorm.search.study import (
    PROBLEM,
    StudyFolder,
    TrialProcess,
    is_lack_of_memory,
    open_study,
    train_trial,
)
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.training.trainer import Epoch


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[StudyFolder, Config]:
    """A folder with a prepared table of 60 molecules, and a tiny run on it."""
    folder = tmp_path_factory.mktemp("table")
    sample_table()[:60].to_csv(folder / "mols.csv", index=False)
    options = TableOptions(str(folder / "mols.csv"), ("penalized_logp",), split="random")
    config = task_config(TABLE, "mol", table_task(options), TrainConfig(epochs=2), architecture=slim)
    config = replace(config, model=replace(config.model, layers=1, width=16, ffn_width=16, heads=2))
    write_labelled(folder / "study", read_labelled(options, "mol"), config, options)
    return StudyFolder(folder / "study"), config


def train_here(trial, table, **train) -> None:
    folder, config = table
    config = replace(config, train=replace(config.train, **train))
    train_trial(trial, folder, config, choose("cpu"), torch.get_num_threads())


def new_trial() -> optuna.Trial:
    return optuna.create_study().ask()


def test_a_trial_reports_its_epochs_to_the_study(table):
    trial = new_trial()
    train_here(trial, table)
    reported = trial.study.trials[0].intermediate_values
    assert list(reported) == [1, 2] and all(value > 0 for value in reported.values())


def test_epochs_that_min_updates_adds_are_pruned_too(table, monkeypatch):
    """48 molecules in batches of 64: one update per epoch."""
    trial = new_trial()
    monkeypatch.setattr(trial, "should_prune", lambda: len(trial.study.trials[0].intermediate_values) == 4)
    with pytest.raises(TrialPruned):
        train_here(trial, table, min_updates=6)
    assert list(trial.study.trials[0].intermediate_values) == [1, 2, 3, 4]


def fail_after_an_epoch(monkeypatch, error: Exception) -> list:
    """Makes trainings fail in their second epoch; returns the splits that are loaded."""

    def epochs():
        yield Epoch(1, 0.5, 0.25, 1e-3, 100.0, 1.0)
        raise error

    loaded: list = []
    monkeypatch.setattr(module, "Trainer", lambda config, *splits: SimpleNamespace(config=config, epochs=epochs))
    monkeypatch.setattr(module, "load_split", lambda table, split, encodings: loaded.append(split))
    return loaded


@pytest.mark.parametrize(("error", "problem"), [(InputError("loss nan"), "loss nan"), (MemoryError(), "out of memory")])
def test_a_training_that_fails_is_pruned_with_the_reason(table, monkeypatch, error, problem):
    loaded = fail_after_an_epoch(monkeypatch, error)
    trial = new_trial()
    with pytest.raises(TrialPruned):
        train_here(trial, table)
    kept = trial.study.trials[0]
    assert kept.intermediate_values == {1: 0.25} and kept.user_attrs == {PROBLEM: problem}
    assert loaded == ["train", "val"], "a trial sees no test molecule"


@pytest.fixture
def start(table):
    """Starts a trial of a study in a file as a process, and waits for its first epoch; the test ends it."""
    started = []

    def run(**train):
        folder, config = table
        folder.study.unlink(missing_ok=True)
        trial = open_study(folder.study, config).ask()
        config = replace(config, train=replace(config.train, **train))
        started.append(TrialProcess(trial, folder, config, choose("cpu"), 1))
        wait_for_epoch(1, trial)
        return started[-1], trial

    yield run
    for one in started:
        one.kill()


def last_epoch(trial) -> int:
    return trial.study.trials[0].last_step or 0


def wait_for_epoch(epoch: int, trial) -> None:
    while last_epoch(trial) < epoch:
        time.sleep(0.01)


@pytest.mark.slow
def test_sigint_from_a_terminal_does_not_reach_a_trial(start):
    """Nor a process server that others have started, which does not block SIGINT."""
    forkserver.ensure_running()
    process, trial = start(epochs=1000)
    os.kill(process.process.pid, signal.SIGINT)
    wait_for_epoch(last_epoch(trial) + 2, trial)
    assert process.process.is_alive()


def test_lack_of_memory_by_its_exceptions():
    assert is_lack_of_memory(MemoryError()) and is_lack_of_memory(torch.OutOfMemoryError())
    with pytest.raises(RuntimeError) as lacking:
        torch.empty(2**60)
    assert is_lack_of_memory(lacking.value)
    for text in ("CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"):
        assert is_lack_of_memory(RuntimeError(text))
    assert not is_lack_of_memory(RuntimeError("shapes do not match"))
