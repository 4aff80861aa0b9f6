from dataclasses import replace

import pytest
from torch import Tensor

from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import load_model, load_tensors
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.signals import Interrupted
from graphormer_sepnorm.training import run_writer as module
from graphormer_sepnorm.training.run_writer import SECONDS_BETWEEN_SAVES, RunWriter, state_of, training_alone, words
from graphormer_sepnorm.training.trainer import BatchShare, Step, Trainer
from tests.robustness.tiny_run import tiny_config


@pytest.fixture
def recorder(tmp_path) -> RunWriter:
    config = tiny_config(epochs=2)
    splits = (load_split("tiny", split, config.model.encodings) for split in ("train", "val"))
    return RunWriter(Trainer(config, *splits), RunFolder(tmp_path / "run"))


def test_an_epoch_is_on_the_disk_when_it_is_yielded(recorder, capsys):
    for number, epoch in enumerate(recorder.epochs(), 1):
        assert [line["epoch"] for line in recorder.run.read_metrics()] == list(range(1, number + 1))
        assert recorder.run.read_metrics()[-1]["val_metric"] == epoch.val_metric
        assert recorder.run.state.exists()
        assert capsys.readouterr().err == words(epoch, recorder.trainer.config) + "\n"


def test_the_facts_are_those_of_the_best_epoch_and_its_weights(recorder):
    facts = recorder.train()
    values = {line["epoch"]: line["val_metric"] for line in recorder.run.read_metrics()}
    assert facts == {"epoch": min(values, key=values.get), "val_metric": min(values.values())}
    _, _, saved = load_model(recorder.run.path)
    assert {name: saved[name] for name in facts} == facts
    assert recorder.run.curves.stat().st_size > 1000


class Clock:
    """A clock that only moves when told."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """For a run that is saved as on a GPU."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "on_gpu", lambda model: True)
    return clock


def on_disk(run: RunFolder) -> tuple[int, int, int]:
    """The last epochs of the state and of the metrics, and the epoch of the weights."""
    lines = run.read_metrics()
    assert [line["epoch"] for line in lines] == list(range(1, len(lines) + 1))
    return load_tensors(run.state)[2]["epoch"], len(lines), load_tensors(run.weights)[2]["epoch"]


def test_on_a_gpu_epochs_are_written_after_some_seconds_and_at_the_end(recorder, clock, monkeypatch):
    """Validation metrics 5, 4, 3, ...: every epoch is the best so far."""
    recorder.trainer.config = replace(recorder.trainer.config, train=replace(recorder.trainer.config.train, epochs=6))
    monkeypatch.setattr(Trainer, "evaluate", lambda trainer, epoch: 6.0 - epoch)
    seen, weights = [], []
    for _ in recorder.epochs():
        seen.append(on_disk(recorder.run))
        weights.append(recorder.trainer.evaluated.cls.detach().clone())
        clock.now += SECONDS_BETWEEN_SAVES * 0.4
    assert seen == [(1, 1, 1)] * 3 + [(4, 4, 4)] * 3
    assert on_disk(recorder.run) == (6, 6, 6)
    assert load_tensors(recorder.run.weights)[0]["cls"].equal(weights[-1])


def test_on_a_gpu_the_best_weights_are_those_of_their_epoch_when_they_are_written(recorder, clock, monkeypatch):
    recorder.trainer.config = replace(recorder.trainer.config, train=replace(recorder.trainer.config.train, epochs=4))
    monkeypatch.setattr(Trainer, "evaluate", lambda trainer, epoch: {1: 3.0, 2: 1.0, 3: 2.0, 4: 4.0}[epoch])
    weights = [recorder.trainer.evaluated.cls.detach().clone() for _ in recorder.epochs()]
    assert on_disk(recorder.run) == (4, 4, 2)
    assert load_tensors(recorder.run.weights)[0]["cls"].equal(weights[1])


def test_on_a_gpu_the_last_epoch_is_on_the_disk_however_a_run_ends(recorder, clock, monkeypatch):
    """During the fourth epoch, when weights have changed."""
    config, update = recorder.trainer.config, Step.__call__
    recorder.trainer.config = replace(config, train=replace(config.train, epochs=6))
    states = []

    def interrupted(step: Step, share: BatchShare, lr: float) -> Tensor:
        if recorder.trainer.progress.epoch == 3:
            states.append({name: tensor.clone() for name, tensor in state_of(recorder.trainer)[0].items()})
            if len(states) == 3:
                raise Interrupted(2)
        return update(step, share, lr)

    monkeypatch.setattr(Step, "__call__", interrupted)
    with pytest.raises(Interrupted):
        recorder.train()
    assert on_disk(recorder.run)[:2] == (3, 3)
    saved = load_tensors(recorder.run.state)[0]
    assert saved.keys() == states[0].keys() and all(saved[name].equal(states[0][name]) for name in saved)
    assert not saved["model.cls"].equal(states[2]["model.cls"])


def test_one_run_trains_in_a_folder_at_a_time(tmp_path):
    with training_alone(RunFolder(tmp_path), resume=False):
        second = training_alone(RunFolder(tmp_path), resume=False)
        with pytest.raises(InputError, match="another process is training"):
            second.__enter__()
    with training_alone(RunFolder(tmp_path), resume=False):
        pass
