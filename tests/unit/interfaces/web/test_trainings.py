"""Trainings of the page, by a program that only pretends to train."""

import io
import shlex
import signal
import time

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.interfaces.web.schemas import TrainingChoice
from graphormer_sepnorm.interfaces.web.trainings import MOST_UPLOADS, Trainings


def start(trainings: Trainings, what: str, choice: TrainingChoice = TrainingChoice()) -> None:  # noqa: B008
    trainings.start(trainings.upload(trainings.keep(io.BytesIO(what.encode()), "my assay.csv")), choice)


def shown(trainings: Trainings) -> list[str]:
    return sorted(path.name for path in trainings.runs.iterdir() if not path.name.startswith("."))


def test_a_run_folder_comes_when_it_is_whole(trainings):
    for name in ("my-assay", "my-assay-2"):
        start(trainings, "train", TrainingChoice(targets=["a b"], quick=True))
        trainings.thread.join()
        progress = trainings.progress
        assert (progress.state, progress.name, progress.percent, progress.left) == ("done", name, 40, "00:10")
        assert progress.phase == "kernel | machine" and progress.sentences == ["learning"]
        words = ["graphormer-sepnorm", "train", "my-assay.csv", "--target-columns", "a b", "--quick", "--out", name]
        assert shlex.split(progress.command) == words
    assert shown(trainings) == ["my-assay", "my-assay-2"] and trainings.names() == ["my-assay-2", "my-assay"]
    assert trainings.run("my-assay").report.read_text() == "<p>report</p>"
    for name in ("other", "..", ""):
        with pytest.raises(InputError):
            trainings.run(name)


@pytest.mark.parametrize(
    ("what", "words"), [("refuse", "nothing to learn"), ("crash", "terminal"), ("die", f"signal {int(signal.SIGKILL)}")]
)
def test_a_failed_training_leaves_a_reason_and_nothing_else(trainings, what, words):
    start(trainings, what)
    trainings.thread.join()
    assert trainings.progress.state == "failed" and words in trainings.progress.problem
    assert shown(trainings) == [] and not list(trainings.folder.glob("*/*/"))


def test_one_training_at_a_time_which_can_be_cancelled(trainings):
    start(trainings, "sleep")
    with pytest.raises(InputError):
        start(trainings, "train")
    while not trainings.progress.percent:
        time.sleep(0.01)
    process = trainings.progress.process
    trainings.cancel()
    assert process.returncode and trainings.progress.state == "cancelled" and not trainings.is_training
    assert shown(trainings) == [] and not list(trainings.folder.glob("*/*/"))
    start(trainings, "train")
    trainings.thread.join()
    trainings.cancel()
    assert trainings.progress.state == "done" and shown(trainings) == ["my-assay"]


def test_what_a_killed_page_leaves_is_removed_by_the_next_one(trainings):
    (trainings.runs / ".training-dead" / "1" / "assay").mkdir(parents=True)
    start(trainings, "sleep")
    other = Trainings(trainings.runs)
    assert not (trainings.runs / ".training-dead").exists() and trainings.folder.exists()
    other.close()
    trainings.close()
    assert list(trainings.runs.iterdir()) == [] and trainings.progress.state == "cancelled"


def test_uploads_are_tables_and_the_last_ones_are_kept(trainings):
    for name in ("a.smi", "a.exe", ""):
        with pytest.raises(InputError):
            trainings.keep(io.BytesIO(b""), name)
    numbers = [trainings.keep(io.BytesIO(b""), "../-.csv") for _ in range(MOST_UPLOADS + 1)]
    assert trainings.upload(numbers[1]).name == "table.csv"
    assert trainings.upload(numbers[1]).parents[1] == trainings.folder
    with pytest.raises(InputError):
        trainings.upload(numbers[0])


CHOICES = [
    TrainingChoice(targets=["y", "a 'quoted\" name"], feature_columns=["pH"], scale="log10", quick=True),
    TrainingChoice(targets=["-y"], task="regression", scale="nM", split="time", split_column="date", parents=True),
    TrainingChoice(targets=["y"], smiles_column="molecule", split="butina", split_column="left out"),
]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_command_reads_what_was_chosen(choice, monkeypatch, tmp_path):
    found = {}

    def remember(path, content, given, task, seed):
        found.update(given=given, task=task)
        raise InputError("enough")

    monkeypatch.setattr("graphormer_sepnorm.interfaces.commands.train.detected", remember)
    monkeypatch.setattr("graphormer_sepnorm.interfaces.commands.train.read_whole", lambda *_: None)
    with pytest.raises(InputError, match="enough"):
        commands.app(["train", "t.csv", *choice.arguments(), "--out", "o"], standalone_mode=False)
    assert found == {"given": choice.given(), "task": choice.task or None}
