"""A table on its way, its downloads, and the store of those that are finished: as CSV, and as JSON for the page."""

import contextlib
import csv
import io
import json
import math
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import cast

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.schemas import (
    ColumnFacts,
    JobState,
    ModelFacts,
    MoleculePrediction,
    Options,
    TableRow,
)
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats import Row, with_free_names
from graphormer_sepnorm.tables.writers import AddedColumn, Cells, text_of_number, write_whole

DAYS_KEPT = 7
FORMAT = 2  # of the JSON in the store; tables of an earlier one are only downloads
NUMBER = re.compile(r"[0-9a-f]{32}")
# What spreadsheets take for the beginning of a formula, also after white space, and its full-width forms.
FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


@dataclass
class Job:
    """A table on its way.

    Attributes:
        number: its address, which nobody can guess.
        source: the file it is read from; None once it is read.
        shown: what messages call that file.
        options: what is said of its molecules.
        columns, rows, added: as in ``TableRows``.
        smiles_column: that has the molecules; before the table is read, the one that is asked for.
        answers: of the first rows.
        state: where it is.
        problem: why it failed.
        seconds: of computing so far.
        single_until: rows up to here are computed one by one, because one of them made its chunk fail.
        is_stored: whether it is over and in the store, so that memory need not keep it.
    """

    number: str
    source: Path | None
    shown: str
    options: Options = field(default_factory=Options)
    columns: list[str] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    smiles_column: str = ""
    added: list[ColumnFacts] = field(default_factory=list)
    answers: list[MoleculePrediction] = field(default_factory=list)
    state: JobState = "waiting"
    problem: str = ""
    seconds: float = 0.0
    single_until: int = 0
    is_stored: bool = False

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled", "failed")

    @property
    def unreadable(self) -> int:
        return sum(bool(answer.error) for answer in list(self.answers))

    @property
    def warned(self) -> int:
        return sum(bool(answer.warning) for answer in list(self.answers))

    @property
    def download(self) -> str:
        """The name of the file that is downloaded."""
        return name_of_download(self.shown)

    def fail(self, problem: str) -> None:
        self.state, self.problem = "failed", problem


def as_text(text: str) -> str:
    """A text of a file; what is not UTF-8 is shown as such."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


class ResultStore:
    """Finished tables in a folder, where they outlive the page; those of more than a week are removed.

    ``NUMBER.csv`` is the download, ``NUMBER.json`` the same table for the page of the same models.

    Args:
        folder: to make, for the user only.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.remove_old()
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from None

    def remove_old(self) -> None:
        """Removes the tables of more than a week; raises OSError."""
        for path in (*self.folder.glob("*.csv"), *self.folder.glob("*.json")):
            is_own = NUMBER.fullmatch(path.stem)  # the folder may hold other files of the user
            if is_own and path.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
                path.unlink(missing_ok=True)

    def put(self, job: Job, facts: ModelFacts) -> None:
        """Keeps a table that is over, the CSV only if there is a row in it, and removes old ones."""
        if job.answers:
            write_atomically(self.folder / f"{job.number}.csv", b"".join(csv_lines(job)))
        write_atomically(self.folder / f"{job.number}.json", as_json(job, facts))
        with contextlib.suppress(OSError):  # such as of a file that another page has just removed
            self.remove_old()

    def find_csv(self, number: str) -> Path | None:
        path = self.folder / f"{number}.csv"
        return path if NUMBER.fullmatch(number) and path.is_file() else None

    def download_of(self, number: str) -> str:
        """The name of the file that is downloaded, also of a table of other models."""
        try:
            return name_of_download(json.loads((self.folder / f"{number}.json").read_bytes())["shown"])
        except (OSError, ValueError, KeyError, TypeError):
            return name_of_download("")

    def load(self, number: str, facts: ModelFacts) -> Job | None:
        """A finished table of the models with these facts; None if there is none."""
        if not NUMBER.fullmatch(number):
            return None
        try:
            return from_json(number, (self.folder / f"{number}.json").read_bytes(), facts)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def as_json(job: Job, facts: ModelFacts) -> bytes:
    content = {
        "format": FORMAT,
        "facts": facts.model_dump(),
        "shown": job.shown,
        "options": job.options.model_dump(),
        "columns": job.columns,
        "rows": [asdict(row) for row in job.rows],
        "smiles_column": job.smiles_column,
        "added": [column.model_dump() for column in job.added],
        "answers": [answer.model_dump() for answer in job.answers],
        "state": job.state,
        "problem": job.problem,
    }
    return json.dumps(content).encode()


def from_json(number: str, content: bytes, facts: ModelFacts) -> Job | None:
    """The table that ``as_json`` gave; None for one of other models or of another format."""
    found = json.loads(content)
    if found.pop("format") != FORMAT or of_models(ModelFacts(**found.pop("facts"))) != of_models(facts):
        return None
    rows = [TableRow(**row | {"conditions": tuple(row["conditions"])}) for row in found.pop("rows")]
    answers = [MoleculePrediction(**answer) for answer in found.pop("answers")]
    added = [ColumnFacts(**column) for column in found.pop("added")]
    options = Options(**found.pop("options"))
    return Job(number, None, options=options, rows=rows, added=added, answers=answers, is_stored=True, **found)


def of_models(facts: ModelFacts) -> dict:
    """The facts that a shown table depends on, which another usual confidence does not change."""
    return facts.model_dump(exclude={"confidence"})


def name_of_download(shown: str) -> str:
    """``assay-predictions.csv`` of the upload ``assay.xlsx``; ``predictions.csv`` of what was no file."""
    name = PurePath(shown)
    return f"{name.stem}-predictions.csv" if name.suffix else "predictions.csv"


def csv_lines(job: Job) -> Iterator[bytes]:
    """The CSV of what is done: the columns of the input, and those of the predictions.

    Fields are quoted, and one that a spreadsheet would take for a formula begins with an apostrophe. Bytes of the input
    that are not UTF-8 become what they were.
    """
    yield csv_line([*job.columns, *with_free_names((column.name for column in job.added), job.columns)])
    for row, answer in zip(job.rows, list(job.answers), strict=False):
        cells = (cell_at(answer, column.place) for column in job.added)
        texts = (cell if isinstance(cell, str) else text_of_number(cell) for cell in cells)
        yield csv_line([*row.fields, *texts])


def workbook(job: Job) -> bytes:
    """The same table as an Excel workbook, whose numbers are numbers; raises InputError as ``write_whole``."""
    answers = list(job.answers)
    rows = [Row(row.fields, row.smiles) for row in job.rows[: len(answers)]]
    cells = [cells_at(answers, column.place) for column in job.added]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "predictions.xlsx"
        write_whole(out, job.columns, rows, [AddedColumn(column.name) for column in job.added], cells)
        return out.read_bytes()


def cells_at(answers: list[MoleculePrediction], place: list[str]) -> Cells:
    """A column: of numbers, or of texts if one of its cells is a text."""
    cells = [cell_at(answer, place) for answer in answers]
    if any(isinstance(cell, str) for cell in cells):
        return [cell if isinstance(cell, str) else text_of_number(cell) for cell in cells]
    return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)


def cell_at(answer: MoleculePrediction, place: list[str]) -> str | float | None:
    """The cell at a place of an answer; None where there is none."""
    found: object = answer
    for name in place:
        found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
    return cast(str | float | None, found)


def csv_line(fields: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(map(harmless, fields))
    return text.getvalue().encode(errors="surrogateescape")


def harmless(text: str) -> str:
    """A field that no spreadsheet takes for a formula; numbers stay what they are."""
    return f"'{text}" if FORMULA.match(text) and not looks_like_number(text) else text


def looks_like_number(text: str) -> bool:
    """Whether a text is a number, with a decimal point or a decimal comma."""
    return re.fullmatch(r"[+-]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?", text) is not None
