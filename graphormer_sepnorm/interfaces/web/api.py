"""The addresses for programs, below ``/api``, and what those for people share with them."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Annotated, Literal, TypeVar, cast
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import InputError, as_text, did_you_mean
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import Job, saved_table
from graphormer_sepnorm.interfaces.web.schemas import AtomContributions, JobStatus, Options, RowPrediction
from graphormer_sepnorm.tables.formats.table import places_of_column
from graphormer_sepnorm.tables.formats.text import DELIMITERS, split_fields
from graphormer_sepnorm.tables.writers.base import as_csv, as_utf8

MOST_SHOWN_OF_NAME = 100
LINES_LOOKED_AT = 100
ATOM = r"(\[[^][]+\]|Br|Cl|[BCNOPSFIbcnops*])"
# A text of the letters and signs of SMILES, or an InChI: whether it is a molecule is for the worker to say.
LIKE_MOLECULE = re.compile(rf"\(*{ATOM}({ATOM}|[-=#$:~/\\.()%\d])*|InChI=\S+")
LIKE_NAME = re.compile(r"[^\W\d][\w .%/()-]*")
CONDITION = "condition "  # begins the name of a field of a form

Found = TypeVar("Found")
MOST_ROWS_AS_JSON = 1000
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=600",
}
MEDIA = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
MEDIA["xlsx"] = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
DOWNLOADED: dict[int | str, dict] = {200: {"content": {media: {} for media in MEDIA.values()}}}


def problems(*statuses: int) -> dict[int | str, dict]:
    """The description of answers of these statuses, which are a sentence."""
    content = {"application/json": {"schema": schemas.Problem.model_json_schema()}}
    return {status: {"content": content} for status in statuses}


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


def known(job: Job | None) -> Job:
    if job is None:
        raise HTTPException(404, "there is no such table: it was never here, or it is no longer kept")
    return job


def job_of(request: Request, id: str) -> Job:
    return known(request.app.state.queue.find(id))


KnownJob = Annotated[Job, Depends(job_of)]


def refuse_empty(job: Job) -> Job:
    """The same table; raises HTTPException if it failed before its first row."""
    if job.state == "failed" and not job.answers:
        raise HTTPException(409, f"the table has no predictions: {as_text(job.problem)}")
    return job


def row_at(rows: Sequence[Found], row: int) -> Found:
    if not 0 <= row < len(rows):
        raise HTTPException(404, "there is no such row")
    return rows[row]


async def explained_atoms(
    request: Request, job: KnownJob, row: int, target: str | None = None
) -> tuple[str, AtomContributions]:
    """The explained target, by default the first one or the most probable class, and the atoms of its prediction."""
    queue: JobQueue = request.app.state.queue
    read, predictions = row_at(job.rows, row), job.answers[row].predictions if row < len(job.answers) else {}
    if target is None and queue.facts.class_names and predictions:
        target = max(predictions, key=lambda name: predictions[name].value)
    target = target or next(iter(predictions), queue.facts.targets[0])
    return target, cast(AtomContributions, await queue.ask("atoms", read.smiles, target, read.conditions))


Explained = Annotated[tuple[str, AtomContributions], Depends(explained_atoms)]


def answered_rows(job: Job, numbers: Iterable[int]) -> list[RowPrediction]:
    names = unique_names(job)
    rows = []
    for number in numbers:
        answer, row = row_at(job.answers, number).model_dump(), job.rows[number]
        fields = dict(zip(names, map(as_text, row.fields), strict=True))
        rows.append(RowPrediction(row=number, smiles=as_text(row.smiles), fields=fields, **answer))
    return rows


def unique_names(job: Job) -> dict[str, str]:
    """The columns by their names, each another one: of several of one name, later ones have a number."""
    taken, numbers, columns = set(map(as_text, job.columns)), Counter[str](), dict[str, str]()
    for column in job.columns:
        unique = name = as_text(column)
        while numbers[name] and unique in taken:
            numbers[name] += 1
            unique = f"{name} ({numbers[name]})"
        numbers[name] = numbers[name] or 1
        taken.add(unique)
        columns[unique] = column
    return columns


def kind_of_text(text: str, smiles_column: str = "") -> str:
    """The kind of a pasted text: ".csv" if its first line names a column of molecules, else ".smi".

    Lines with one separator are a table, too, if none begins with a molecule, or the first one has names of columns.
    """
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()][:LINES_LOOKED_AT]
    marks = [mark for mark in DELIMITERS if lines and all(mark in line for line in lines)]
    headers = [split_fields(lines[0], mark) for mark in DELIMITERS if lines and mark in lines[0]]
    if len(lines) > 1 and lines[0].split()[0].lower() != "smiles":  # which a .smi may begin with
        headers.append([lines[0]])
    is_table = any(places_of_column(names, smiles_column or None) for names in headers)
    if not is_table and len(lines) > 1 and marks:
        has_molecules = any(LIKE_MOLECULE.fullmatch(line.split(None, 1)[0]) for line in lines)
        is_table = not has_molecules or any(map(are_names, (split_fields(lines[0], mark) for mark in marks)))
    return ".csv" if is_table else ".smi"


def are_names(fields: list[str]) -> bool:
    """Whether the fields of a line look like names of columns, and none like a molecule."""
    names = {field.strip() for field in fields}
    is_each = all(LIKE_NAME.fullmatch(name) and not LIKE_MOLECULE.fullmatch(name) for name in names)
    return is_each and len(names) == len(fields) > 1


async def options_of(request: Request, fields: Annotated[schemas.FormOptions, Form()]) -> Options:
    """The options of a form; a field ``condition NAME`` has a condition. Raises InputError for unknown fields."""
    of_page = () if request.scope["path"].startswith("/api/") else ("text", "columns")
    known, conditions = [*schemas.FormOptions.model_fields, "file", "smiles_column", *of_page], {}
    for name, text in (await request.form()).items():
        if name.startswith(CONDITION) and isinstance(text, str):
            conditions[name.removeprefix(CONDITION)] = text
        elif name not in known:
            raise InputError(f"unknown field {name!r}, choose of {', '.join(known)}{did_you_mean(name, known)}")
    return Options(**dict(fields), conditions=conditions)


FormOptions = Annotated[Options, Depends(options_of)]
UploadedTable = Annotated[UploadFile, File(description="CSV, TSV, .smi, SDF or .xlsx")]
Start = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1, le=MOST_ROWS_AS_JSON)]
Partial = Annotated[bool, Query(description="rows so far of a table that is not over")]
SmilesColumn = Annotated[str, Form(description="column of the SMILES; empty: found by its name")]


def submit_file(queue: JobQueue, file: UploadFile, options: Options, smiles_column: str) -> Job:
    """Puts an uploaded table into the queue; only the suffix of its name is used, and the name in messages."""
    path = PurePath(file.filename or "the table")
    is_long = len(path.name) > MOST_SHOWN_OF_NAME
    title = f"{path.name[:MOST_SHOWN_OF_NAME]}...{path.suffix[:10]}" if is_long else path.name
    return queue.submit(file.file, path.suffix.lower(), title, options, smiles_column)


class SvgResponse(Response):
    media_type = "image/svg+xml"


def add_tables(app: FastAPI, queue: JobQueue) -> None:
    given = APIRouter(prefix="/api/tables", tags=["tables"], responses=problems(403, 408, 413, 422, 503))
    table = APIRouter(prefix="/api/tables/{id}", tags=["tables"], responses=problems(404, 422))

    @app.get("/healthz", include_in_schema=False)
    async def health() -> Response:
        """Whether tables are computed; needs no token."""
        state, status = ("ok", 200) if await queue.is_well() else ("failed", 503)
        return JSONResponse({"status": state, "waiting": queue.waiting}, status)

    @app.get("/api/model", tags=["model"])
    async def model() -> schemas.ModelFacts:
        """Facts about the models."""
        return queue.facts

    @given.post("", status_code=202)
    def predict_smiles(molecules: schemas.SmilesList) -> JobStatus:
        """Predicts SMILES, given as JSON."""
        if (number := len(molecules.smiles)) > queue.limits.rows:
            raise InputError(f"the list has {number} molecules: give at most {queue.limits.rows} at once")
        options = Options.model_validate(molecules.model_dump(exclude={"smiles"}))
        table = as_csv([["smiles"], *([as_utf8(one or "")] for one in molecules.smiles)])
        return status_of(queue.submit(io.BytesIO(table), ".csv", "the list", options))

    @given.post("/file", status_code=202)
    def predict_file(options: FormOptions, file: UploadedTable, smiles_column: SmilesColumn = "") -> JobStatus:
        """Predicts a table of molecules."""
        return status_of(submit_file(queue, file, options, smiles_column))

    @table.get("")
    def progress(job: KnownJob) -> JobStatus:
        """How far a table is."""
        return status_of(job)

    @table.delete("", responses=problems(403))
    def cancel(job: KnownJob) -> JobStatus:
        """Cancels a table; what is done is kept."""
        queue.cancel(job)
        return status_of(job)

    @table.get("/rows", responses=problems(409))
    def rows(job: KnownJob, start: Start = 0, count: Count = 100) -> list[RowPrediction]:
        """Rows that are done, at most ``count`` from ``start`` on."""
        refuse_empty(job)
        return answered_rows(job, range(start, min(start + count, len(job.answers))))

    @table.get("/predictions.{kind}", response_class=Response, responses=DOWNLOADED | problems(409))
    def download(id: str, kind: Literal["csv", "xlsx", "parquet"], partial: Partial = False) -> Response:
        """A table that is over (409 before) as CSV, Excel workbook or Parquet, also of other models before a restart.

        The header ``Rows-Done`` says how many rows of how many it has, as a cancelled or failed table has only some.
        """
        job = refuse_empty(known(queue.find(id) or queue.store.load(id)))
        done = f"{len(job.answers)} of {len(job.rows)}"
        if not (job.is_over or partial):
            words = f"the table is {job.state}, {done} rows are done"
            raise HTTPException(409, f"{words}: wait until it is over, or add ?partial=true for these rows")
        path = PurePath(job.shown)
        name = f"{path.stem}-predictions.{kind}" if path.suffix else f"predictions.{kind}"
        encoded = quote(name, safe="", errors="replace")  # as it may have any characters (RFC 6266)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{encoded}", "Rows-Done": done}
        return Response(saved_table(job, f".{kind}"), 200, headers, MEDIA[kind])

    app.include_router(given)
    app.include_router(table)


def add_pictures(app: FastAPI, queue: JobQueue) -> None:
    described = problems(404, 422, 503, 504)
    pictures = APIRouter(prefix="/api/tables/{id}/rows/{row}", tags=["pictures"], responses=described)

    @pictures.get("/atoms")
    async def atoms(explained: Explained) -> AtomContributions:
        """The atoms that a prediction depends on; by default of the first target or the most probable class."""
        return explained[1]

    @pictures.get("/atoms.svg", response_class=SvgResponse)
    async def atoms_picture(explained: Explained) -> Response:
        """The same as a picture."""
        return SvgResponse(explained[1].picture, 200, PICTURE_HEADERS)

    @pictures.get("/{kind}.svg", response_class=SvgResponse)
    async def structure(job: KnownJob, row: int, kind: Literal["structure", "nearest"]) -> Response:
        """The structure of a molecule, or of the nearest training molecule where it is known and was asked for."""
        smiles = row_at(job.rows, row).smiles if kind == "structure" else row_at(job.answers, row).nearest
        if kind == "nearest" and not smiles:
            raise HTTPException(404, "the row has no nearest training molecule")
        return SvgResponse(str(await queue.ask("structure", smiles)), 200, PICTURE_HEADERS)

    app.include_router(pictures)
