"""The queue: turns, limits and what a bad molecule costs; and a real process that is too slow or crashes."""

import asyncio
import io
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from pebble import ProcessExpired
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import job_queue
from graphormer_sepnorm.interfaces.web.job_queue import JobLimits, JobQueue, NoAnswer, Worker
from graphormer_sepnorm.interfaces.web.jobs import STOPPED, Job
from graphormer_sepnorm.interfaces.web.schemas import Options, TableRow, TableRows
from tests.page import InThisProcess, PretendedService, open_queue


def until(condition) -> None:
    """Waits for it, for ten minutes at most."""
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come")


def submit(queue: JobQueue, *smiles: str) -> Job:
    return queue.submit(io.BytesIO("\n".join(["smiles", *smiles]).encode()), ".csv", "the list", Options())


def submit_together(queue: JobQueue, *tables: list[str]) -> list[Job]:
    """Puts tables into the queue before the queue looks at the first of them."""
    with queue.lock:
        return [submit(queue, *smiles) for smiles in tables]


class Held(PretendedService):
    """Predicts when it is let; notes how many molecules it was asked for, and of which table."""

    def __init__(self):
        self.free, self.seen = threading.Event(), []

    def predict(self, rows, options):
        self.free.wait(60)
        self.seen.append(rows[0].smiles[0])
        return super().predict(rows, options)

    def structure(self, smiles):
        self.seen.append("picture")
        return super().structure(smiles)


@pytest.fixture
def held(tmp_path):
    models = Held()
    with open_queue(InThisProcess(models), tmp_path / "store", JobLimits(waiting=3, kept=2, rows=1000)) as queue:
        queue.models = models
        yield queue
        models.free.set()


def test_tables_take_turns_so_that_a_small_one_does_not_wait_for_a_large_one(held):
    large, small = submit_together(held, ["A"] * 500, ["B"] * 10)
    until(lambda: small.rows)
    held.models.free.set()
    until(lambda: large.is_over and small.is_over)
    assert len(large.answers) == 500 and len(small.answers) == 10
    assert "B" in held.models.seen[:2]


def test_a_picture_goes_before_the_next_chunk(held):
    table = submit(held, *["A"] * 500)
    until(lambda: table.rows)
    picture = threading.Thread(target=lambda: asyncio.run(held.ask("structure", "CC")))
    picture.start()
    until(lambda: len(held.worker.asked) == 2)
    held.models.free.set()
    picture.join()
    assert "picture" in held.models.seen[:2]


def test_more_than_may_wait_is_refused(held):
    tables = submit_together(held, ["A"], ["A"], ["A"])
    until(lambda: all(table.rows for table in tables) and held.waiting == 2)
    submit(held, "A")  # one of the three is with the worker
    refusals = []
    for _ in range(2):
        with pytest.raises(HTTPException) as refused:
            submit(held, "A")
        refusals.append(refused.value)
    assert refusals[0] is not refusals[1], "one would keep the frames of all"


def test_a_cancelled_table_keeps_what_is_done(held):
    table, other = submit_together(held, ["A"] * 500, ["B"])
    until(lambda: table.rows and other.rows)
    held.cancel(table)
    held.cancel(other)
    held.models.free.set()
    until(lambda: table.is_over and other.is_over)
    assert table.state == other.state == "cancelled"
    assert len(table.answers) in (0, job_queue.CHUNK) and len(other.answers) in (0, 1)


@pytest.mark.parametrize("suffix", ["", ".exe", ".gz", ".csv/../../x", ".parquet"])
def test_other_files_are_refused_before_they_are_written(held, suffix):
    with pytest.raises(InputError, match="give one of"):
        held.submit(io.BytesIO(b"smiles\nC"), suffix, "it", Options())


@pytest.mark.slow
def test_a_bad_molecule_costs_its_own_row(tmp_path):
    """One that takes too long, one that crashes the process and one that meets a bug, among good ones."""
    smiles = ["C", "CC", "SLEEP", "CCC", "CRASH", "BUG", "X", "CCCC"]
    with open_queue(Worker(PretendedService), tmp_path, JobLimits(step_seconds=3)) as queue:
        table = submit(queue, *smiles)
        until(lambda: table.is_over)
    assert table.state == "done"
    errors = [answer.error for answer in table.answers]
    assert [bool(error) for error in errors] == [False, False, True, False, True, True, True, False]
    assert "more than 3 seconds" in errors[2] and "crashed" in errors[4] and "KeyError" in errors[5]
    assert [answer.predictions["length"].value for answer in table.answers if not answer.error] == [1, 2, 3, 4]


def test_the_time_of_a_table_is_limited(tmp_path):
    with open_queue(InThisProcess(PretendedService()), tmp_path, JobLimits(seconds=0)) as queue:
        table = submit(queue, "C")
        until(lambda: table.is_over)
    assert table.state == "failed" and "minutes of computing" in table.problem


def test_closing_keeps_what_is_done_and_leaves_no_upload(held, monkeypatch):
    done = submit(held, "A")
    held.models.free.set()
    until(lambda: done.is_over)
    held.models.free.clear()
    running = submit(held, *["A"] * 500)
    until(lambda: running.rows)
    monkeypatch.setattr(held.worker, "interrupt", held.models.free.set)
    held.close()
    assert (running.state, running.problem) == ("failed", STOPPED)
    assert held.store.load(done.number).answers == done.answers
    assert list(held.store.folder.glob("uploads-*")) == []
    with pytest.raises(HTTPException):
        submit(held, "A")


def test_an_unexpected_exception_ends_its_own_table(held, monkeypatch):
    """A temporary file that something removed, a question that the program cannot answer, and a full disk."""
    monkeypatch.setattr(held.worker, "ask", Mock(side_effect=OSError("gone")))
    gone = submit(held, "A")
    until(lambda: gone.is_stored)
    monkeypatch.undo()
    assert (gone.state, gone.problem) == ("failed", "the computation failed: OSError")
    monkeypatch.setattr(held.store, "end", Mock(side_effect=MemoryError()))
    held.models.free.set()
    unstored = submit(held, "A")
    until(lambda: unstored.problem)
    assert (unstored.state, unstored.problem) == ("done", "the computation failed: MemoryError")
    assert not unstored.is_stored, "memory has it"
    monkeypatch.undo()
    other = submit(held, "A")
    until(lambda: other.is_stored)
    assert other.state == "done"


def test_a_killed_page_leaves_its_finished_rows_and_the_next_one_removes_its_uploads(tmp_path):
    """While another page keeps its tables in the same folder."""
    context = multiprocessing.get_context("fork")
    numbers = context.SimpleQueue()
    killed = context.Process(target=compute_until_killed, args=(tmp_path, numbers))
    killed.start()
    number = numbers.get()
    killed.kill()
    killed.join()
    (left,) = tmp_path.glob("uploads-*")
    with (
        open_queue(InThisProcess(PretendedService()), tmp_path) as queue,
        open_queue(InThisProcess(PretendedService()), tmp_path) as other,
    ):
        assert set(tmp_path.glob("uploads-*")) == {queue.uploads, other.uploads} and left != queue.uploads
        found = queue.find(number)
        assert (found.state, len(found.rows), len(found.answers)) == ("failed", 100, job_queue.CHUNK)


def compute_until_killed(folder: Path, numbers: object) -> None:
    """A page that is killed after the first chunk of a table."""

    class Waiting(PretendedService):
        def predict(self, rows, options):
            if len(rows) < job_queue.CHUNK:
                numbers.put(table.number)
                threading.Event().wait()
            return super().predict(rows, options)

    with open_queue(InThisProcess(Waiting()), folder) as queue:
        with queue.lock:
            table = submit(queue, *["A"] * 100)
        threading.Event().wait()


@pytest.mark.parametrize(("shown", "error"), [("t.sdf", ""), ("t.csv", "broken")])
def test_another_column_makes_up_for_a_broken_structure_but_not_for_a_broken_line(held, shown, error):
    """The column is called as the page shows it, with a replacement character for a byte that is not UTF-8."""
    table = Job(number="0" * 32, shown=shown, columns=["smiles", " M\udcfc"], rows=[TableRow(["", "CC"], "", "broken")])
    again = held.predict_again(held.remember(table), " M\ufffd")
    assert (again.smiles_column, again.rows[0].error) == (" M\udcfc", error)
    assert again.rows[0].smiles == ("" if error else "CC")
    with pytest.raises(InputError, match="does not have one column 'M'"):
        held.predict_again(table, "M")


def test_a_workbook_is_read_again_with_a_column_of_another_sheet(held, monkeypatch):
    sheets, asked = {"Notes": ["who"], "Data": ["mol"]}, []
    table = TableRows(["who"], [TableRow(["me"], "")], problem="choose", sheets=sheets)
    monkeypatch.setattr(held.models, "read", lambda *details: asked.append(details[4:]) or table)
    held.models.free.set()
    first = held.submit(io.BytesIO(b"a workbook"), ".xlsx", "a.xlsx", Options())
    until(lambda: first.is_stored)
    again = held.predict_again(first, "Data:mol: a")
    until(lambda: again.is_stored)
    assert asked == [("", ""), ("mol: a", "Data")] and again.source.read_bytes() == b"a workbook"


@pytest.mark.parametrize("limits", [JobLimits(kept=2), JobLimits(kept_rows=4)])
def test_a_table_that_memory_forgot_is_found_again(tmp_path, limits):
    with open_queue(InThisProcess(PretendedService()), tmp_path, limits) as queue:
        tables = []
        for _ in range(4):
            tables.append(submit(queue, "A", "X"))
            until(lambda: tables[-1].is_stored)
        until(lambda: list(queue.jobs) == [table.number for table in tables[2:]])
        found = queue.find(tables[0].number)
        assert found is not tables[0] and found.answers == tables[0].answers
        assert (found.state, found.rows) == ("done", tables[0].rows)
        assert len(queue.jobs) == 2 and queue.find("0" * 32) is None


def rows(smiles: str) -> list[TableRow]:
    return [TableRow([smiles], smiles, "")]


@pytest.fixture
def worker():
    worker = Worker(PretendedService)
    yield worker
    worker.end()


@pytest.mark.slow
def test_a_process_that_is_killed_between_two_questions_is_started_again(worker):
    number = worker.ask(60, "process")
    os.kill(number, signal.SIGKILL)
    until(lambda: not worker.pool.active)
    assert worker.ask(60, "structure", "CC") == "<svg><!-- 2 --></svg>"
    with pytest.raises(InputError, match="no target 'b'"):
        worker.ask(60, "atoms", "C", "b")
    number = worker.ask(60, "process")
    worker.end()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    with pytest.raises(NoAnswer, match="has ended"):
        worker.ask(60, "facts")


def unusable() -> object:
    raise InputError("no such model")


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_named():
    with pytest.raises(InputError, match="no such model"):
        Worker(unusable)


@pytest.mark.slow
def test_a_question_that_waits_behind_one_that_crashes_is_answered(worker):
    crash, other = worker.schedule(60, "predict", rows("CRASH"), Options()), worker.schedule(60, "structure", "CC")
    with pytest.raises(ProcessExpired):
        crash.result(600)
    assert other.result(600) == "<svg><!-- 2 --></svg>"


@pytest.mark.slow
def test_closing_waits_for_no_picture(tmp_path):
    with open_queue(Worker(PretendedService), tmp_path) as queue:
        asked = [queue.worker.schedule(600, "predict", rows("SLEEP"), Options()) for _ in range(2)]
        table = submit(queue, "C")
        until(lambda: table.state == "computing")
    assert table.state == "failed" and all(each.cancelled() for each in asked)


class Changing(PretendedService):
    """Another model in each process."""

    @property
    def identity(self) -> str:
        return str(os.getpid())


@pytest.mark.slow
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
