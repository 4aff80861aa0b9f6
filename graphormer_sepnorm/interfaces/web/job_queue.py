"""Where questions wait for the one process that computes, of pebble's.

A table is computed ``CHUNK`` molecules at a time, the tables in turn and with the pictures that are asked for meanwhile
between them, so nothing waits for the end of a large table.
"""

import asyncio
import contextlib
import multiprocessing
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO, cast

from pebble import ProcessExpired, ProcessPool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web.jobs import STOPPED, Job, ResultStore, keep
from graphormer_sepnorm.interfaces.web.schemas import ModelFacts, MoleculePrediction, Options, TableRows
from graphormer_sepnorm.system.files import own_folder
from graphormer_sepnorm.tables.formats import TABLE_KINDS, kind_of

CHUNK = 64  # molecules of a table
SECONDS_TO_START = 600
IS_MADE = ""  # the first question, which no method answers


class NoAnswer(Exception):
    """A question has no answer; the message says why."""


class Worker:
    """Asks the object that ``make(*arguments)`` gives in another process, which is started again if it has ended.

    Questions are answered one after another. If the object has an ``identity``, one with another identity answers
    nothing after a new start. Raises InputError as ``make``, or if the process crashed.
    """

    def __init__(self, make: Callable[..., object], *arguments: object):
        context, recipe = multiprocessing.get_context("spawn"), (make, arguments)
        self.new_pool = partial(ProcessPool, 1, initializer=make_object, initargs=recipe, context=context)
        self.pool = self.new_pool()
        self.asked: set[Future] = set()  # that have no answer yet
        self.is_open, self.identity = True, ""
        self.scheduling = threading.Lock()
        try:
            self.identity = str(self.ask(SECONDS_TO_START, IS_MADE))
        except (InputError, NoAnswer) as error:
            self.end()
            raise error if isinstance(error, InputError) else InputError(f"the page cannot compute: {error}") from None

    def ask(self, seconds: float, question: str, *arguments: object) -> object:
        """The result of a method of the object; raises InputError as it, and NoAnswer as ``explaining_failures``."""
        with explaining_failures(seconds):
            return self.schedule(seconds, question, *arguments).result(seconds + SECONDS_TO_START)

    def schedule(self, seconds: float, question: str, *arguments: object) -> Future:
        """The same to come; the process is ended after so many seconds of computing."""
        with self.scheduling:
            if self.is_open and not self.pool.active:
                self.cancel_asked()
                self.pool = self.new_pool()
            future = self.pool.schedule(answer, [question, arguments, self.identity], timeout=seconds)
            self.asked.add(future)
        future.add_done_callback(self.asked.discard)
        return future

    def interrupt(self) -> None:
        """Lets the questions that were asked have no answer, and no other be asked; for another thread."""
        with self.scheduling:
            self.is_open = False
            self.pool.stop()
            self.cancel_asked()

    def cancel_asked(self) -> None:
        """Cancels the questions of a pool that has ended, which may never say so."""
        for future in list(self.asked):
            future.cancel()

    def end(self) -> None:
        self.interrupt()
        self.pool.join()


@contextlib.contextmanager
def explaining_failures(seconds: float) -> Iterator[None]:
    """Raises NoAnswer if a question took too long, or the process crashed or has ended."""
    try:
        yield
    except TimeoutError:
        raise NoAnswer(f"it took more than {seconds:g} seconds") from None
    except (ProcessExpired, BrokenProcessPool):
        raise NoAnswer("the computing process crashed") from None
    except (CancelledError, asyncio.CancelledError, RuntimeError):  # pebble's of a pool that is not active
        raise NoAnswer("the computing process has ended") from None


made: object = None  # in the other process: the object, or the InputError instead of it


def make_object(make: Callable[..., object], arguments: tuple) -> None:
    global made
    try:
        made = make(*arguments)
    except InputError as error:
        made = error


def answer(question: str, arguments: tuple, expected: str) -> object:
    """The result of a method of the object in the other process; raises InputError or NoAnswer."""
    if isinstance(made, InputError):
        raise made
    identity = getattr(made, "identity", "")
    if question == IS_MADE:
        return identity
    if identity != expected:
        raise InputError("the model has changed since the page was started: start the page again")
    try:
        return getattr(made, question)(*arguments)
    except InputError as error:
        raise InputError(error.sentence) from None
    except Exception as error:
        traceback.print_exc()
        raise NoAnswer(f"the computation failed: {type(error).__name__}") from None


@dataclass(frozen=True)
class JobLimits:
    upload_bytes: int = 20_000_000  # of a request
    rows: int = 50_000  # of a table
    seconds: float = 1800  # of computing for a table
    step_seconds: float = 120  # for a chunk, for one molecule that made a chunk take longer, or for a picture
    waiting: int = 50  # tables that are not done, and pictures
    kept: int = 50  # tables in memory, the earliest of more are only in the store
    kept_rows: int = 200_000  # in memory, of finished tables


class JobQueue:
    """Tables, and the thread that computes them, with a worker that has ``service.PredictionService``.

    The lock is held for moments only: nothing is computed or written meanwhile, so that handlers of requests may wait
    for it. Uploads are in the folder of the store until they are read; those that a killed page left are removed.
    """

    def __init__(self, open_worker: Callable[[list[str]], Worker], limits: JobLimits, store: ResultStore):
        """``open_worker`` gives the worker of models by their names, by default of the usual ones."""
        self.open_worker, self.limits, self.store = open_worker, limits, store
        self.worker, self.facts = self.opened([])
        self.exchanging = threading.RLock()  # held while models are exchanged, and while a table comes in
        self.jobs: dict[str, Job] = {}
        self.current: Job | None = None  # whose step was the last to begin
        self.lock = threading.RLock()
        self.is_open = True
        self.claim = contextlib.ExitStack()
        self.uploads = self.claim.enter_context(own_folder(store.folder, "uploads-"))
        self.steps = ThreadPoolExecutor(1)

    def opened(self, models: list[str]) -> tuple[Worker, ModelFacts]:
        worker = self.open_worker(models)
        return worker, cast(ModelFacts, worker.ask(self.limits.step_seconds, "facts"))

    def use(self, models: list[str]) -> None:
        """Exchanges the models for others, which tables that come meanwhile wait for.

        After an InputError, those before stay.
        """
        with self.exchanging:
            if not all(job.is_over for job in list(self.jobs.values())):
                raise InputError("tables are being computed with this model: wait for them, or cancel them")
            before, (worker, facts) = self.worker, self.opened(models)
            with self.lock:
                self.jobs.clear()
                self.worker, self.facts = worker, facts
            before.end()

    def submit(
        self, file: BinaryIO, suffix: str, title: str, options: Options, smiles_column: str = "", sheet: str = ""
    ) -> Job:
        """Puts a table into the queue; raises InputError for a bad one, and HTTPException if too many wait."""
        if suffix not in TABLE_KINDS:
            raise InputError(f"{title} is not a table that can be read: give one of {', '.join(TABLE_KINDS)}")
        with self.exchanging:
            self.facts.check(options)
            self.check_room(self.waiting)
            source = self.uploads / f"{(number := secrets.token_hex(16))}{suffix}"
            keep(file, source, title)
            table = Job(number=number, source=source, shown=title, smiles_column=smiles_column, sheet=sheet)
            return self.enqueue(replace(table, options=options))

    def predict_again(self, job: Job, smiles_column: str) -> Job:
        """Puts a table into the queue again, with the molecules of another column; raises as ``submit``.

        The column of a workbook whose sheets have no molecules comes after its sheet and a colon.
        """
        if job.source and job.sheets:
            sheet, _, column = smiles_column.partition(":")
            with open(job.source, "rb") as file:
                return self.submit(file, job.source.suffix, job.shown, job.options, column, sheet)
        self.check_room(self.waiting)
        columns = list(map(as_text, job.columns))  # as the page has them
        if columns.count(as_text(smiles_column)) != 1:
            raise InputError(f"{job.shown} does not have one column {smiles_column!r}")
        place = columns.index(as_text(smiles_column))
        is_item = kind_of(job.shown) == ".sdf" and place > 0  # a data item, and errors are those of the structure
        rows = [
            row if row.error and not is_item else replace(row, smiles=row.fields[place], error="") for row in job.rows
        ]
        table = job.columns, rows, job.columns[place], job.added, "", job.header, job.delimiter, job.about
        with self.exchanging:
            if not self.find(job.number):
                raise InputError(f"other models predict now: send {job.shown} again")
            return self.enqueue(Job(*table, number=secrets.token_hex(16), shown=job.shown, options=job.options))

    def enqueue(self, job: Job) -> Job:
        self.store.begin(job, self.facts)
        with self.lock:
            self.steps.submit(self.advance, self.remember(job))
        return job

    @property
    def waiting(self) -> int:
        """How many tables are not over, without the one whose step is computed."""
        return sum(not job.is_over and job is not self.current for job in list(self.jobs.values()))

    def check_room(self, waiting: int) -> None:
        if not self.is_open or waiting >= self.limits.waiting:
            raise HTTPException(503, "too much is waiting to be computed: try again in a while", {"Retry-After": "30"})

    def remember(self, job: Job) -> Job:
        """Keeps a table in memory, where the earliest finished ones make room for it."""
        with self.lock:
            self.jobs[job.number] = job
            stored = [each for each in self.jobs.values() if each.is_stored]
            rows = sum(len(each.rows) for each in stored)
            for each in stored[:-1]:  # the last one is looked at
                if len(self.jobs) > self.limits.kept or rows > self.limits.kept_rows:
                    rows -= len(self.jobs.pop(each.number).rows)
                    if each.source:
                        each.source.unlink(missing_ok=True)
        return job

    def find(self, number: str) -> Job | None:
        """The table with that address, in memory or in the store; None if there is none."""
        if (job := self.jobs.get(number)) or not (job := self.store.load(number, self.facts)):
            return job
        return self.remember(job)

    async def ask(self, question: str, *details: object) -> object:
        """The answer of the worker for a request; raises HTTPException if there is none, or too much waits."""
        self.check_room(len(self.worker.asked))
        seconds = self.limits.step_seconds
        try:
            with explaining_failures(seconds):
                return await asyncio.shield(asyncio.wrap_future(self.worker.schedule(seconds, question, *details)))
        except NoAnswer as error:
            raise HTTPException(504, f"there is no answer: {error}") from None

    async def is_well(self) -> bool:
        """Whether tables are computed: a worker that has nothing to do is asked, and started again if it has ended."""
        with contextlib.suppress(HTTPException, InputError):
            return bool(self.worker.asked) or await self.ask(IS_MADE) == self.worker.identity
        return False

    def cancel(self, job: Job) -> None:
        with self.lock:
            if not job.is_over:
                job.state = "cancelled"

    def close(self) -> None:
        """Stops computing and keeps what is done; afterwards there is no thread, no process and no upload."""
        with self.lock:
            self.is_open = False
        self.worker.interrupt()
        self.steps.shutdown()
        self.worker.end()
        self.claim.close()

    def advance(self, job: Job) -> None:
        """Reads a table or computes its next chunk, and puts it back into the queue unless it is over."""
        with self.lock:
            self.current = job
            if not job.is_over and self.is_open:
                job.state = "computing"
        for picture in list(self.worker.asked):  # whose time is not that of the table
            with contextlib.suppress(CancelledError, TimeoutError):
                picture.exception(self.limits.step_seconds)
        started = time.monotonic()
        try:
            if not job.is_over and self.is_open:
                self.step(job)
        except Exception as error:
            job.fail(reason_of(error) if self.is_open else STOPPED)
        job.seconds += time.monotonic() - started
        if not job.is_over and job.seconds > self.limits.seconds:
            job.fail(f"stopped after {self.limits.seconds / 60:g} minutes of computing; what is done is kept")
        with self.lock:
            if not job.is_over and self.is_open:
                self.steps.submit(self.advance, job)
                return
        self.finish(job)

    def step(self, job: Job) -> None:
        if not job.columns:
            return self.read(job)
        done = len(job.answers)
        rows = job.rows[done : done + (1 if done < job.single_until else CHUNK)]
        try:
            answers = cast(list, self.worker.ask(self.limits.step_seconds, "predict", rows, job.options))
        except NoAnswer as error:
            if not self.is_open:
                raise
            if len(rows) > 1:
                job.single_until = done + len(rows)
                return
            answers = [MoleculePrediction(error=f"this molecule could not be computed: {error}")]
        pairs = zip(rows, answers, strict=True)
        answers = [MoleculePrediction(error=row.error) if row.error else answer for row, answer in pairs]
        job.answers += answers
        self.store.add(job, answers=answers)
        if len(job.answers) == len(job.rows) and job.state == "computing":
            job.state = "done"

    def read(self, job: Job) -> None:
        try:
            request = job.source, job.shown, self.limits.rows, job.options, job.smiles_column, job.sheet
            table = cast(TableRows, self.worker.ask(self.limits.step_seconds, "read", *request))
        except NoAnswer as error:
            raise InputError(f"{job.shown} could not be read: {error}") from None
        vars(job).update(vars(table))
        self.store.add_rows(job)
        if job.problem:
            job.state = "failed"

    def finish(self, job: Job) -> None:
        """The end of a table, which memory keeps if the store cannot."""
        if not job.is_over:
            job.fail(STOPPED)
        try:
            if job.source and not job.sheets:  # of which another one may be chosen
                job.source.unlink(missing_ok=True)
            self.store.end(job)
        except Exception as error:
            job.problem = reason_of(error)
        if job.number in self.jobs:  # unless the models have been exchanged
            self.remember(job)


def reason_of(error: Exception) -> str:
    """Why a table failed, in a sentence; the place of an unexpected exception is printed."""
    if isinstance(error, InputError | NoAnswer):
        return str(error)
    traceback.print_exception(error)
    return f"the computation failed: {type(error).__name__}"
