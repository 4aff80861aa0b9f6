"""Where questions wait: one queue of tables and pictures before the one process that computes.

A table is computed ``CHUNK`` molecules at a time, the tables in turn, so a small one does not wait for the end of a
large one. Up to ``PICTURES`` pictures are drawn between two chunks.
"""

import contextlib
import secrets
import threading
import time
import traceback
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import BinaryIO

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web.jobs import Job, ResultStore, keep
from graphormer_sepnorm.interfaces.web.schemas import ModelFacts, MoleculePrediction, Options, TableRows
from graphormer_sepnorm.interfaces.web.worker import NoAnswer, Worker
from graphormer_sepnorm.system.files import own_folder
from graphormer_sepnorm.tables.formats import TABLE_KINDS, kind_of

UPLOADS = "uploads-"
CHUNK, PICTURES = 64, 4  # molecules of a table, and pictures before them


@dataclass(frozen=True)
class JobLimits:
    upload_bytes: int = 20_000_000  # of a request
    rows: int = 50_000  # of a table
    seconds: float = 1800  # of computing for a table
    step_seconds: float = 120  # for a chunk, for one molecule that made a chunk take longer, or for a picture
    waiting: int = 50  # tables that are not done, and pictures
    kept: int = 50  # tables in memory, the earliest of more are only in the store
    kept_rows: int = 200_000  # in memory, of finished tables


class QueueFull(Exception):
    """There are too many questions before this one."""


class JobQueue:
    """The queue and the thread that works on it, with a worker that has ``service.PredictionService``.

    The lock is held for moments only: nothing is computed or written meanwhile, so that handlers of requests may wait
    for it. Uploads are in the folder of the store until they are read; those that a killed page left are removed.
    """

    def __init__(self, worker: Worker, limits: JobLimits, store: ResultStore):
        self.worker, self.limits, self.store = worker, limits, store
        facts = worker.ask(limits.step_seconds, "facts")
        assert isinstance(facts, ModelFacts)
        self.facts = facts
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.waiting: deque[Job] = deque()
        self.pictures: deque[tuple[Future, str, tuple]] = deque()
        self.changed = threading.Condition()
        self.is_open = True
        self.claim = contextlib.ExitStack()
        self.uploads = self.claim.enter_context(own_folder(store.folder, UPLOADS))
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def submit(self, file: BinaryIO, suffix: str, shown: str, options: Options, smiles_column: str = "") -> Job:
        """Puts a table into the queue, with molecules in a column, "" if it is found by its name.

        Raises InputError for another suffix, options that the models do not have, or a full disk; QueueFull.
        """
        if suffix not in TABLE_KINDS:
            raise InputError(f"{shown} is not a table that can be read: give one of {', '.join(TABLE_KINDS)}")
        self.facts.check(options)
        self.check_room(len(self.waiting))
        number = secrets.token_hex(16)
        source = self.uploads / f"{number}{suffix}"
        keep(file, source, shown)
        return self.enqueue(Job(number, source, shown, options, smiles_column=smiles_column))

    def predict_again(self, job: Job, smiles_column: str) -> Job:
        """Puts the rows of a table into the queue once more, with the molecules of another column.

        Raises InputError if there is no such column, or several; QueueFull.
        """
        self.check_room(len(self.waiting))
        columns = list(map(as_text, job.columns))  # as the page has them
        if columns.count(as_text(smiles_column)) != 1:
            raise InputError(f"{job.shown} does not have one column {smiles_column!r}")
        place = columns.index(as_text(smiles_column))
        smiles_column = job.columns[place]
        is_item = kind_of(job.shown) == ".sdf" and place > 0  # a data item, and errors are those of the structure
        rows = [
            row if row.error and not is_item else replace(row, smiles=row.fields[place], error="") for row in job.rows
        ]
        number = secrets.token_hex(16)
        return self.enqueue(Job(number, None, job.shown, job.options, job.columns, rows, smiles_column, job.added))

    def enqueue(self, job: Job) -> Job:
        self.store.begin(job, self.facts)
        with self.changed:
            self.jobs[job.number] = job
            self.waiting.append(job)
            self.forget_earliest()
            self.changed.notify()
        return job

    @property
    def is_computing(self) -> bool:
        with self.changed:
            return not all(job.is_over for job in self.jobs.values())

    def check_room(self, waiting: int) -> None:
        if not self.is_open or waiting >= self.limits.waiting:
            raise QueueFull

    def forget_earliest(self) -> None:
        stored = [number for number, job in self.jobs.items() if job.is_stored]
        rows = sum(len(self.jobs[number].rows) for number in stored)
        for number in stored[:-1]:  # the last one is looked at
            if len(self.jobs) <= self.limits.kept and rows <= self.limits.kept_rows:
                return
            rows -= len(self.jobs.pop(number).rows)

    def find(self, number: str) -> Job | None:
        """The table with that address, in memory or in the store; None if there is none."""
        with self.changed:
            if job := self.jobs.get(number):
                return job
        job = self.store.load(number, self.facts)
        if job:
            with self.changed:
                self.jobs[number] = job
                self.forget_earliest()
        return job

    def ask(self, question: str, *details: object) -> Future:
        """The answer to come for a picture; raises QueueFull if too many wait."""
        future: Future = Future()
        with self.changed:
            self.check_room(len(self.pictures))
            self.pictures.append((future, question, details))
            self.changed.notify()
        return future

    def cancel(self, job: Job) -> None:
        with self.changed:
            if not job.is_over:
                job.state = "cancelled"

    def close(self) -> None:
        """Stops computing and keeps what is done; afterwards there is no thread, no process and no upload."""
        with self.changed:
            self.is_open = False
            self.changed.notify()
        self.worker.interrupt()
        self.thread.join()
        self.worker.end()
        for job in self.waiting:
            self.finish(job)
        for future, _, _ in self.pictures:
            future.cancel()
        self.claim.close()

    def work(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.pictures or not self.is_open)
                if not self.is_open:
                    return
                pictures = [self.pictures.popleft() for _ in range(min(len(self.pictures), PICTURES))]
                job = self.waiting.popleft() if self.waiting else None
                if job and not job.is_over:
                    job.state = "computing"
            for picture in pictures:
                self.draw(*picture)
            if job:
                self.advance(job)

    def draw(self, future: Future, question: str, details: tuple) -> None:
        if not self.is_open:
            future.cancel()
        elif future.set_running_or_notify_cancel():
            try:
                future.set_result(self.worker.ask(self.limits.step_seconds, question, *details))
            except (InputError, NoAnswer) as error:
                future.set_exception(error)
            except Exception as error:
                future.set_exception(NoAnswer(reason_of(error)))

    def advance(self, job: Job) -> None:
        """Reads a table or computes its next chunk, and puts it back into the queue unless it is over."""
        started = time.monotonic()
        try:
            if not job.is_over:
                self.step(job)
        except Exception as error:
            if self.is_open:
                job.fail(reason_of(error))
        job.seconds += time.monotonic() - started
        if not job.is_over and job.seconds > self.limits.seconds:
            job.fail(f"stopped after {self.limits.seconds / 60:g} minutes of computing; what is done is kept")
        if job.is_over or not self.is_open:
            self.finish(job)
        else:
            with self.changed:
                self.waiting.append(job)

    def step(self, job: Job) -> None:
        if job.source:
            return self.read(job)
        done = len(job.answers)
        rows = job.rows[done : done + (1 if done < job.single_until else CHUNK)]
        try:
            answers = self.worker.ask(self.limits.step_seconds, "predict", rows, job.options)
            assert isinstance(answers, list)
        except NoAnswer as error:
            if not self.is_open:
                raise
            if len(rows) > 1:
                job.single_until = done + len(rows)
                return
            answers = [MoleculePrediction(error=f"this molecule could not be computed: {error}")]
        answers = [
            MoleculePrediction(error=row.error) if row.error else answer
            for row, answer in zip(rows, answers, strict=True)
        ]
        job.answers += answers
        self.store.add(job, answers=answers)
        if len(job.answers) == len(job.rows) and job.state == "computing":
            job.state = "done"

    def read(self, job: Job) -> None:
        source, job.source = job.source, None
        assert source
        try:
            asked = source, job.shown, self.limits.rows, job.options, job.smiles_column
            found = self.worker.ask(self.limits.step_seconds, "read", *asked)
        except NoAnswer as error:
            raise InputError(f"{job.shown} could not be read: {error}") from None
        finally:
            source.unlink(missing_ok=True)
        assert isinstance(found, TableRows)
        job.columns, job.rows = found.columns, found.rows
        job.smiles_column, job.added = found.smiles_column, found.added
        self.store.add_rows(job)
        if found.problem:
            job.fail(found.problem)

    def finish(self, job: Job) -> None:
        """The end of a table, which memory keeps if the store cannot."""
        if not job.is_over:
            job.state = "cancelled"
        try:
            if job.source:
                job.source.unlink(missing_ok=True)
            self.store.end(job)
        except Exception as error:
            job.problem = reason_of(error)
        with self.changed:
            self.forget_earliest()


def reason_of(error: Exception) -> str:
    """Why a table or a picture failed, in a sentence; the place of an unexpected exception is printed."""
    if isinstance(error, InputError | NoAnswer):
        return str(error)
    traceback.print_exception(error)
    return f"the computation failed: {type(error).__name__}"
