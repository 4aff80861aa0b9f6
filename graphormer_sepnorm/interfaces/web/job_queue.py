"""Where questions wait: one queue of tables and pictures before the one process that computes.

A table is computed ``CHUNK`` molecules at a time, the tables in turn, so a small one does not wait for the end of a
large one; pictures go before the next chunk.
"""

import csv
import io
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.schemas import Answer, Facts, Record, Records
from graphormer_sepnorm.interfaces.web.worker import Lost, Worker
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats import TABLE_KINDS, with_free_names

CHUNK = 64
DAYS_ON_SHELF = 7
NUMBER = re.compile(r"[0-9a-f]{32}")
# What spreadsheets take for the beginning of a formula, also after white space, and its full-width forms.
FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
State = Literal["waiting", "computing", "done", "cancelled", "failed"]


@dataclass(frozen=True)
class Limits:
    """What one page allows.

    Attributes:
        upload_bytes: of a request.
        rows: of a table.
        seconds: of computing for a table.
        step_seconds: for a chunk of molecules, for one molecule that made a chunk take longer, or for a picture.
        waiting: tables that are not done, and pictures.
        kept: tables in memory; of the earliest of more than so many the CSV alone is kept.
    """

    upload_bytes: int = 20_000_000
    rows: int = 50_000
    seconds: float = 1800
    step_seconds: float = 120
    waiting: int = 50
    kept: int = 50


class Busy(Exception):
    """There are too many questions before this one."""


@dataclass
class Table:
    """A table on its way.

    Attributes:
        number: its address, which nobody can guess.
        source: the file it is read from; None once it is read.
        shown: what messages call that file.
        columns, rows: as read.
        answers: of the first rows.
        state: where it is.
        problem: why it failed.
        seconds: of computing so far.
        single_until: rows up to here are computed one by one, because one of them made its chunk fail.
    """

    number: str
    source: Path | None
    shown: str
    columns: list[str] = field(default_factory=list)
    rows: list[Record] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    state: State = "waiting"
    problem: str = ""
    seconds: float = 0.0
    single_until: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled", "failed")

    @property
    def unreadable(self) -> int:
        return sum(bool(answer.error) for answer in list(self.answers))


class Shelf:
    """Finished tables as CSV in a folder, where they outlive the page; those of more than a week are removed.

    Args:
        folder: to make, for the user alone.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in folder.glob("*.csv"):
                if path.stat().st_mtime < time.time() - DAYS_ON_SHELF * 86400:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from None

    def put(self, number: str, content: bytes) -> None:
        write_atomically(self.folder / f"{number}.csv", content)

    def find(self, number: str) -> Path | None:
        path = self.folder / f"{number}.csv"
        return path if NUMBER.fullmatch(number) and path.is_file() else None


class Desk:
    """The queue and the thread that works on it.

    Args:
        worker: has ``models.Models``.
        limits: of the page.
        shelf: for finished tables.
    """

    def __init__(self, worker: Worker, limits: Limits, shelf: Shelf):
        self.worker, self.limits, self.shelf = worker, limits, shelf
        facts = worker.ask(limits.step_seconds, "facts")
        assert isinstance(facts, Facts)
        self.facts = facts
        self.tables: OrderedDict[str, Table] = OrderedDict()
        self.queue: deque[Table] = deque()
        self.pictures: deque[tuple[Future, str, tuple]] = deque()
        self.changed = threading.Condition()
        self.is_open = True
        self.uploads = tempfile.TemporaryDirectory(prefix="graphormer-sepnorm-")
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def submit(self, file: BinaryIO, suffix: str, shown: str) -> Table:
        """Puts a table into the queue.

        Args:
            file: its content.
            suffix: what it is, one of ``TABLE_KINDS``.
            shown: what messages call it.

        Raises:
            InputError: another suffix.
            Busy: too many tables wait.
        """
        if suffix not in TABLE_KINDS:
            raise InputError(f"{shown} is not a table that can be read: give one of {', '.join(TABLE_KINDS)}")
        self.check_room(len(self.queue))
        number = secrets.token_hex(16)
        source = Path(self.uploads.name) / f"{number}{suffix}"
        with open(source, "xb") as copy:
            shutil.copyfileobj(file, copy)
        table = Table(number, source, shown)
        with self.changed:
            self.tables[number] = table
            self.queue.append(table)
            self.forget_earliest()
            self.changed.notify()
        return table

    def check_room(self, waiting: int) -> None:
        if not self.is_open or waiting >= self.limits.waiting:
            raise Busy

    def forget_earliest(self) -> None:
        over = [number for number, table in self.tables.items() if table.is_over]
        for number in over[: max(0, len(self.tables) - self.limits.kept)]:
            del self.tables[number]

    def ask(self, question: str, *details: object) -> Future:
        """The answer to come for a picture; raises Busy if too many wait."""
        future: Future = Future()
        with self.changed:
            self.check_room(len(self.pictures))
            self.pictures.append((future, question, details))
            self.changed.notify()
        return future

    def cancel(self, table: Table) -> None:
        """Stops a table; what is computed is kept."""
        with self.changed:
            if table in self.queue:
                self.queue.remove(table)
                self.finish(table, "cancelled")
            elif not table.is_over:
                table.state = "cancelled"

    def close(self) -> None:
        """Stops computing and keeps what is done; afterwards there is no thread, no process and no upload."""
        with self.changed:
            self.is_open = False
            waiting, self.queue = list(self.queue), deque()
            self.changed.notify()
        self.worker.interrupt()
        self.thread.join()
        self.worker.end()
        for table in waiting:
            self.finish(table, "cancelled")
        for future, _, _ in self.pictures:
            future.cancel()
        self.uploads.cleanup()

    def work(self) -> None:
        """What the thread does."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.queue or self.pictures or not self.is_open)
                if not self.is_open:
                    return
                pictures = [self.pictures.popleft() for _ in range(len(self.pictures))]
                table = self.queue.popleft() if self.queue else None
                if table:
                    table.state = "computing"
            for future, question, details in pictures:
                self.draw(future, question, details)
            if table:
                self.advance(table)

    def draw(self, future: Future, question: str, details: tuple) -> None:
        if not self.is_open:
            future.cancel()
        elif future.set_running_or_notify_cancel():
            try:
                future.set_result(self.worker.ask(self.limits.step_seconds, question, *details))
            except (InputError, Lost) as error:
                future.set_exception(error)

    def advance(self, table: Table) -> None:
        """Reads a table or computes its next chunk, and puts it back into the queue unless it is over."""
        started = time.monotonic()
        try:
            self.step(table)
        except (InputError, Lost) as error:
            if self.is_open:
                table.state, table.problem = "failed", str(error)
        table.seconds += time.monotonic() - started
        if not table.is_over and table.seconds > self.limits.seconds:
            table.state = "failed"
            table.problem = f"stopped after {self.limits.seconds / 60:g} minutes of computing; what is done is kept"
        with self.changed:
            if table.state == "computing" and self.is_open:
                self.queue.append(table)
            else:
                self.finish(table, table.state if table.is_over else "cancelled")

    def step(self, table: Table) -> None:
        if table.source:
            self.read(table)
            return
        done = len(table.answers)
        rows = table.rows[done : done + (1 if done < table.single_until else CHUNK)]
        try:
            answers = self.worker.ask(self.limits.step_seconds, "predict", [row.smiles for row in rows])
            assert isinstance(answers, list)
        except Lost as error:
            if not self.is_open:
                raise
            if len(rows) > 1:
                table.single_until = done + len(rows)
                return
            answers = [Answer(error=f"this molecule could not be computed: {error}")]
        reasons = (row.error for row in rows)
        table.answers += [
            Answer(error=error) if error else answer for error, answer in zip(reasons, answers, strict=True)
        ]
        if len(table.answers) == len(table.rows) and table.state == "computing":
            table.state = "done"

    def read(self, table: Table) -> None:
        source, table.source = table.source, None
        assert source
        try:
            records = self.worker.ask(self.limits.step_seconds, "read", source, table.shown, self.limits.rows)
        except Lost as error:
            raise InputError(f"{table.shown} could not be read: {error}") from None
        finally:
            source.unlink()
        assert isinstance(records, Records)
        table.columns, table.rows = records.columns, records.rows

    def finish(self, table: Table, state: State) -> None:
        """The end of a table; its CSV goes on the shelf, if there is a row in it."""
        if table.source:
            table.source.unlink(missing_ok=True)
        if table.answers:
            try:
                self.shelf.put(table.number, b"".join(csv_lines(table, self.facts)))
            except InputError as error:
                table.problem = str(error)
        table.state = state


def csv_lines(table: Table, facts: Facts) -> Iterator[bytes]:
    """The CSV of what is done: the columns of the input, and those of the predictions.

    Fields are quoted, and one that a spreadsheet would take for a formula begins with an apostrophe. Bytes of the input
    that are not UTF-8 become what they were.
    """
    yield csv_line([*table.columns, *with_free_names(added_columns(facts), table.columns)])
    for row, answer in zip(table.rows, list(table.answers), strict=False):
        yield csv_line([*row.fields, *added_fields(answer, facts)])


def added_columns(facts: Facts) -> list[str]:
    names = list(facts.targets)
    if facts.models > 1:
        names += [f"{target}_std" for target in facts.targets]
    if facts.confidence is not None:
        names += [f"{target}_{end}" for target in facts.targets for end in ("low", "high")]
    if facts.knows_domain:
        names += ["similarity", "nearest", "warning"]
    return [*names, "error"]


def added_fields(answer: Answer, facts: Facts) -> list[str]:
    """The fields of ``added_columns``."""
    found = [answer.predictions.get(target) for target in facts.targets]
    numbers = [one.value if one else None for one in found]
    if facts.models > 1:
        numbers += [one.spread if one else None for one in found]
    if facts.confidence is not None:
        numbers += [end for one in found for end in ((one.low, one.high) if one else (None, None))]
    texts = [as_number(number) for number in numbers]
    if facts.knows_domain:
        texts += [as_number(answer.similarity), answer.nearest, answer.warning]
    return [*texts, answer.error]


def as_number(number: float | None) -> str:
    return "" if number is None else f"{number:.7g}"


def csv_line(fields: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(map(harmless, fields))
    return text.getvalue().encode(errors="surrogateescape")


def harmless(text: str) -> str:
    """A field that no spreadsheet takes for a formula; numbers stay what they are."""
    return f"'{text}" if FORMULA.match(text) and not is_number(text) else text


def is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None
