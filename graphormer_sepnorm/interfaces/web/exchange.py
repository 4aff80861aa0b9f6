"""Functions that requests about tables share: how a table is submitted, found and shown."""

import asyncio
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import PurePath
from typing import Annotated, TypeVar

from fastapi import Depends, Form, Request, UploadFile
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import as_text
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.schemas import AtomContributions, JobStatus, Options, RowPrediction
from graphormer_sepnorm.interfaces.web.worker import NoAnswer
from graphormer_sepnorm.tables.formats.csv_text import DELIMITERS, split
from graphormer_sepnorm.tables.formats.table import places_of_column

MOST_SHOWN_OF_NAME = 100
LINES_LOOKED_AT = 100
ATOM = r"(\[[^][]+\]|Br|Cl|[BCNOPSFIbcnops*])"
# A text of the letters and signs of SMILES, or an InChI: whether it is a molecule is for the worker to say.
LIKE_MOLECULE = re.compile(rf"\(*{ATOM}({ATOM}|[-=#$:~/\\.()%\d])*|InChI=\S+")
LIKE_NAME = re.compile(r"[^\W\d][\w .%/()-]*")
CONDITION = "condition "  # begins the name of a field of a form
NO_TABLE = HTTPException(404, "there is no such table: it was never here, or it is no longer kept")

Found = TypeVar("Found")


def status_of(job: Job) -> JobStatus:
    answers = list(job.answers)
    return JobStatus(
        id=job.number,
        state=job.state,
        problem=as_text(job.problem),
        rows=len(job.rows),
        done=len(answers),
        unreadable=sum(bool(answer.error) for answer in answers),
        warned=sum(bool(answer.warning) for answer in answers),
        columns=list(map(as_text, job.columns)),
        smiles_column=as_text(job.smiles_column),
    )


def known(queue: JobQueue, id: str) -> Job:
    """The table with that address; raises HTTPException if there is none."""
    job = queue.find(id)
    if job is None:
        raise NO_TABLE
    return job


def with_rows(job: Job | None) -> Job:
    """The same table; raises HTTPException if there is none, or it failed before its first row."""
    if job is None:
        raise NO_TABLE
    if job.state == "failed" and not job.answers:
        raise HTTPException(409, f"the table has no predictions: {as_text(job.problem)}")
    return job


def row_at(rows: Sequence[Found], row: int) -> Found:
    """A row, or its answer; raises HTTPException if there is none."""
    if not 0 <= row < len(rows):
        raise HTTPException(404, "there is no such row")
    return rows[row]


async def explained_atoms(queue: JobQueue, id: str, row: int, target: str | None) -> tuple[Job, str, AtomContributions]:
    """The table, the explained target and the atoms of its prediction; raises HTTPException.

    By default, the target is the most probable one of several classes, or the first one.
    """
    job = await run_in_threadpool(known, queue, id)
    read, facts = row_at(job.rows, row), queue.facts
    predictions = job.answers[row].predictions if row < len(job.answers) else {}
    if target is None and facts.class_names and predictions:
        target = max(predictions, key=lambda name: predictions[name].value)
    target = target or next(iter(predictions), facts.targets[0])
    found = await answer_to(queue.ask("atoms", read.smiles, target, read.conditions))
    assert isinstance(found, AtomContributions)
    return job, target, found


def rows_of(job: Job, numbers: Iterable[int]) -> list[RowPrediction]:
    """Rows that are done."""
    names = field_names(job)
    return [
        RowPrediction(
            row=number,
            smiles=as_text(job.rows[number].smiles),
            fields=dict(zip(names, map(as_text, job.rows[number].fields), strict=True)),
            **job.answers[number].model_dump(),
        )
        for number in numbers
    ]


def field_names(job: Job) -> list[str]:
    """The names of the columns, each another one: of several of one name, later ones have a number."""
    columns = list(map(as_text, job.columns))
    taken, numbers, names = set(columns), dict[str, Iterator[int]](), []
    for name in columns:
        if name in numbers:
            name = next(each for number in numbers[name] if (each := f"{name} ({number})") not in taken)
            taken.add(name)
        else:
            numbers[name] = count(2)
        names.append(name)
    return names


def as_table(smiles: list[str]) -> bytes:
    """A CSV with one column."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["smiles"], *([one] for one in smiles)])
    return text.getvalue().encode(errors="replace")


def kind_of_text(text: str, smiles_column: str = "") -> str:
    """The kind of a pasted text: ".csv" if its first line names a column of molecules, else ".smi".

    A text is also a table if all lines have the same separator, and none begins with a molecule or the first one has
    the names of columns: then the user is asked for the column.
    """
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()][:LINES_LOOKED_AT]
    marks = [mark for mark in DELIMITERS if lines and all(mark in line for line in lines)]
    headers = [split(lines[0], mark) for mark in DELIMITERS if lines and mark in lines[0]]
    if len(lines) > 1 and lines[0].split()[0].lower() != "smiles":  # which a .smi may begin with
        headers.append([lines[0]])
    is_table = any(places_of_column(names, smiles_column or None) for names in headers)
    if not is_table and len(lines) > 1 and marks:
        has_molecules = any(LIKE_MOLECULE.fullmatch(line.split(None, 1)[0]) for line in lines)
        is_table = not has_molecules or any(map(are_names, (split(lines[0], mark) for mark in marks)))
    return ".csv" if is_table else ".smi"


def are_names(fields: list[str]) -> bool:
    """Whether the fields of a line look like names of columns, and none like a molecule."""
    names = [field.strip() for field in fields]
    return len(set(names)) == len(names) > 1 and all(
        LIKE_NAME.fullmatch(name) and not LIKE_MOLECULE.fullmatch(name) for name in names
    )


async def answer_to(future: Future, asked: str = "picture") -> object:
    """The answer of the worker to what was ``asked`` for; raises HTTPException if there is none."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        raise HTTPException(503, "the page is closing") from None
    except NoAnswer as error:
        raise HTTPException(504, f"there is no {asked}: {error}") from None


async def options_of(
    request: Request,
    interval: Annotated[float | None, Form(description="confidence of intervals; empty: none")] = None,
    domain: Annotated[bool, Form(description="compare molecules with the training molecules")] = False,
    alerts: Annotated[bool, Form(description="name structural alerts")] = False,
    properties: Annotated[bool, Form(description="add molecular weight, logP, TPSA and others")] = False,
    models: Annotated[tuple[str, ...], Form(description="which of several models predict; empty: all")] = (),
) -> Options:
    """The options of a form; a field ``condition NAME`` has a condition."""
    conditions = {
        name.removeprefix(CONDITION): text
        for name, text in (await request.form()).items()
        if name.startswith(CONDITION) and isinstance(text, str)
    }
    return Options(
        interval=interval,
        domain=domain,
        alerts=alerts,
        properties=properties,
        models=list(models),
        conditions=conditions,
    )


FormOptions = Annotated[Options, Depends(options_of)]
SmilesColumn = Annotated[str, Form(description="column of the SMILES; empty: found by its name")]


def submit_file(queue: JobQueue, file: UploadFile, options: Options, smiles_column: str) -> Job:
    """Puts an uploaded table into the queue; only the suffix of its name is used, and the name in messages."""
    name = PurePath(file.filename or "the table")
    shown = name.name
    if len(shown) > MOST_SHOWN_OF_NAME:
        shown = f"{shown[:MOST_SHOWN_OF_NAME]}...{name.suffix[:10]}"
    return queue.submit(file.file, name.suffix.lower(), shown, options, smiles_column)
