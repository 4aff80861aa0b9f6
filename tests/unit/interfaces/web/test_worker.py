"""A real process that is too slow, crashes, or cannot start."""

import os
import signal
import threading
from concurrent.futures import CancelledError

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.job_queue import NoAnswer, Worker
from graphormer_sepnorm.interfaces.web.schemas import Options, TableRow
from tests.page import PretendedService

pytestmark = pytest.mark.slow  # each test starts a process


def rows(smiles: str) -> list[TableRow]:
    return [TableRow([smiles], smiles, "")]


@pytest.fixture
def worker():
    worker = Worker(PretendedService)
    yield worker
    worker.end()


def test_a_question_that_takes_too_long_ends_its_process_and_not_the_next_question(worker):
    with pytest.raises(NoAnswer, match=r"more than 0\.2 seconds"):
        worker.ask(0.2, "predict", rows("SLEEP"), Options())
    (answer,) = worker.ask(60, "predict", rows("CCO"), Options())
    assert answer.predictions["length"].value == 3


def test_a_process_that_is_killed_between_two_questions_is_started_again(worker):
    number = worker.ask(60, "process")
    os.kill(number, signal.SIGKILL)
    while worker.pool.active:
        threading.Event().wait(0.01)
    assert worker.ask(60, "structure", "CC") == "<svg><!-- 2 --></svg>"


def test_mistakes_of_the_asker_and_of_the_program_come_back_by_name(worker):
    with pytest.raises(InputError, match="no target 'b'"):
        worker.ask(60, "atoms", "C", "b")
    with pytest.raises(NoAnswer, match="KeyError"):
        worker.ask(60, "predict", rows("BUG"), Options())
    assert worker.ask(60, "facts").model == "pretended"


def test_an_ended_process_is_gone_and_answers_nothing(worker):
    number = worker.ask(60, "process")
    worker.end()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    with pytest.raises(NoAnswer, match="has ended"):
        worker.ask(60, "facts")


def test_an_interrupted_question_has_no_answer(worker):
    asked = worker.schedule(600, "predict", rows("SLEEP"), Options())
    worker.interrupt()
    with pytest.raises(CancelledError):
        asked.result(600)


class Changing(PretendedService):
    """Another model in each process."""

    @property
    def identity(self) -> str:
        return str(os.getpid())


def test_a_model_that_has_changed_when_its_process_starts_again_answers_nothing():
    worker = Worker(Changing)
    try:
        assert worker.ask(60, "structure", "CC") == "<svg><!-- 2 --></svg>"
        with pytest.raises(NoAnswer, match="crashed"):
            worker.ask(60, "predict", rows("CRASH"), Options())
        with pytest.raises(InputError, match="the model has changed since the page was started"):
            worker.ask(60, "structure", "CC")
    finally:
        worker.end()


def unusable() -> object:
    raise InputError("no such model")


def test_what_cannot_be_made_is_said():
    with pytest.raises(InputError, match="no such model"):
        Worker(unusable)
