"""A real process that is too slow, crashes, or cannot start."""

import os

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.worker import Lost, Worker
from tests.page import Pretended


def unusable() -> object:
    raise InputError("no such model")


@pytest.fixture
def worker():
    worker = Worker(Pretended)
    yield worker
    worker.end()


def test_a_question_that_takes_too_long_ends_its_process_and_not_the_next_question(worker):
    with pytest.raises(Lost, match=r"more than 0\.2 seconds"):
        worker.ask(0.2, "predict", ["SLEEP"])
    (answer,) = worker.ask(60, "predict", ["CCO"])
    assert answer.predictions["length"].value == 3


def test_a_crash_costs_its_own_question(worker):
    with pytest.raises(Lost, match="crashed"):
        worker.ask(60, "predict", ["CRASH"])
    assert worker.ask(60, "structure", "CC") == "<svg><!-- 2 --></svg>"


def test_mistakes_of_the_asker_and_of_the_program_come_back_by_name(worker):
    with pytest.raises(InputError, match="no target 'b'"):
        worker.ask(60, "atoms", "C", "b")
    with pytest.raises(Lost, match="KeyError"):
        worker.ask(60, "predict", ["BUG"])
    assert worker.ask(60, "facts").model == "pretended"


def test_an_ended_process_is_gone(worker):
    number = worker.process.pid
    worker.interrupt()
    worker.end()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_what_cannot_be_made_is_said():
    with pytest.raises(InputError, match="no such model"):
        Worker(unusable)
