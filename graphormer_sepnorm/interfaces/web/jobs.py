"""A table on its way, its downloads, and the store of tables."""

import contextlib
import json
import math
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.schemas import ColumnFacts, ModelFacts, MoleculePrediction, Options, TableRow
from graphormer_sepnorm.tables.formats.table import Row, Table
from graphormer_sepnorm.tables.rows import with_decimal
from graphormer_sepnorm.tables.writers import WRITERS, write_whole
from graphormer_sepnorm.tables.writers.base import DIGITS, AddedColumn, Cells, text_of_number
from graphormer_sepnorm.tables.writers.excel import ExcelWriter

DAYS_KEPT = 7
STOPPED = "the server was stopped before the table was done, or another page computes it: predict it again, or wait"
FORMAT = 3  # of the files in the store; those of another one are no tables
NUMBER = re.compile(r"[0-9a-f]{32}")
# What spreadsheets take for the beginning of a formula, also after white space, and its full-width forms.
FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
# With a decimal point or a decimal comma.
PLAIN_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?")


@dataclass(kw_only=True)
class Job(schemas.TableRows):
    """A table on its way; before it is read, ``smiles_column`` is the one that is asked for."""

    number: str  # its address, which nobody can guess
    source: Path | None = None  # the file it is read from, as long as it is kept
    sheet: str = ""  # of a workbook that is asked for
    shown: str = ""  # what messages call that file
    options: Options = field(default_factory=Options)
    answers: list[MoleculePrediction] = field(default_factory=list)  # of the first rows
    state: schemas.JobState = "waiting"
    seconds: float = 0.0  # of computing so far
    single_until: int = 0  # rows up to here are computed one by one, because one of them made its chunk fail
    is_stored: bool = False  # over and in the store, so that memory need not keep it

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled", "failed")

    def fail(self, problem: str) -> None:
        self.state, self.problem = "failed", problem


class ResultStore:
    """Tables in a folder for the user only, where they outlive the page; those of more than a week are removed.

    ``NUMBER.jsonl`` grows with its table: each line has what is new of it, the last one its end. Without an end, the
    page was killed: the table has failed then, with the rows of all whole lines.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.remove_old()
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from None

    def remove_old(self) -> None:
        for path in self.folder.iterdir():
            is_own = NUMBER.fullmatch(path.stem)  # the folder may hold other files of the user
            if is_own and path.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
                path.unlink(missing_ok=True)

    def begin(self, job: Job, facts: ModelFacts) -> None:
        with contextlib.suppress(OSError):  # such as of a file that another page has just removed
            self.remove_old()
        self.add(job, format=FORMAT, facts=facts, shown=job.shown, options=job.options)
        self.add_rows(job)

    def add_rows(self, job: Job) -> None:
        rows = [(row.fields, row.smiles, row.error, row.conditions) for row in job.rows]
        parts = ("columns", "smiles_column", "added", "header", "delimiter", "about")
        self.add(job, rows=rows, **{name: getattr(job, name) for name in parts})

    def end(self, job: Job) -> None:
        self.add(job, state=job.state, problem=job.problem)
        job.is_stored = True

    def add(self, job: Job, **news: object) -> None:
        """Adds what is new of a table; raises InputError if it cannot be written."""
        try:
            with open(self.folder / f"{job.number}.jsonl", "ab") as file:
                file.write(json.dumps(news, default=lambda one: one.model_dump(exclude_defaults=True)).encode() + b"\n")
        except OSError as error:
            raise InputError(f"the table cannot be kept in {self.folder}: {error.strerror}") from None

    def load(self, number: str, facts: ModelFacts | None = None) -> Job | None:
        """A table of the models with these facts, by default of any; None if there is none, or of another format."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            if NUMBER.fullmatch(number):
                job, its_facts = read_job(number, (self.folder / f"{number}.jsonl").read_bytes())
                # A shown table does not depend on the usual confidence.
                if facts is None or its_facts.model_copy(update={"confidence": facts.confidence}) == facts:
                    return job
        return None


def read_job(number: str, content: bytes) -> tuple[Job, ModelFacts]:
    """The table in a file of the store, and the facts about its models; raises KeyError for another format."""
    saved: dict = {"state": "failed", "problem": STOPPED, "answers": []}
    for line in content.splitlines():
        try:
            news = json.loads(line)
        except ValueError:  # the page was killed, or the disk was full, in the middle of the line
            break
        saved["answers"] += news.pop("answers", [])
        saved |= news
    facts = {FORMAT: ModelFacts(**saved.pop("facts"))}[saved.pop("format")]
    saved["rows"] = [TableRow(row[0], row[1], row[2], conditions=tuple(row[3])) for row in saved["rows"]]
    for name, model in (("added", ColumnFacts), ("answers", MoleculePrediction)):
        saved[name] = [model(**each) for each in saved[name]]
    return Job(number=number, options=Options(**saved.pop("options")), is_stored=True, **saved), facts


def keep(file: BinaryIO, path: Path, title: str) -> None:
    """Writes an upload, also after the user has removed its folder; raises InputError if that is not possible."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(path, "xb") as copy:
            shutil.copyfileobj(file, copy)
    except OSError as error:
        raise InputError(f"{title} could not be kept: {error.strerror}") from None


def saved_table(job: Job, suffix: str) -> bytes:
    """A table as far as it is done, as ``predict`` writes it; in a CSV, formulas begin with an apostrophe."""
    answers = list(job.answers)
    safe = escape_formula if suffix == ".csv" else str
    rows = [Row([*map(safe, row.fields)], row.smiles) for row in job.rows[: len(answers)]]
    added, cells = zip(*(written_column(answers, column, safe) for column in job.added), strict=True)
    like = with_decimal(Table(job.columns, iter(job.rows), job.delimiter))
    writers = WRITERS | {".xlsx": partial(ExcelWriter, about=job.about)}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"predictions{suffix}"
        write_whole(out, [*map(safe, job.columns)], rows, added, list(cells), like, writers)
        return out.read_bytes()


def written_column(
    answers: list[MoleculePrediction], column: ColumnFacts, safe: Callable[[str], str]
) -> tuple[AddedColumn, Cells]:
    """A column: of numbers, or of texts if one of its cells is a text."""
    cells, name = [cell_at(answer, column.place) for answer in answers], safe(column.name)
    if any(isinstance(cell, str) for cell in cells):
        texts = [cell if isinstance(cell, str) else text_of_number(cell, DIGITS[column.kind]) for cell in cells]
        return AddedColumn(name, "text"), list(map(safe, texts))
    return AddedColumn(name, column.kind), np.array([math.nan if cell is None else cell for cell in cells], np.float64)


def cell_at(answer: MoleculePrediction, place: list[str]) -> str | float | None:
    value: Any = answer
    for name in place:
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    return value


def escape_formula(text: str) -> str:
    """A field that no spreadsheet takes for a formula; numbers stay what they are."""
    return f"'{text}" if FORMULA.match(text) and not PLAIN_NUMBER.fullmatch(text) else text
