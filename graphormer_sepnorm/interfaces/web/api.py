"""The addresses for programs, below ``/api``."""

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, File, Query, UploadFile
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.interfaces.web.exchange import (
    NO_TABLE,
    FormOptions,
    SmilesColumn,
    answer_to,
    as_table,
    explained_atoms,
    known,
    row_at,
    rows_of,
    status_of,
    submit_file,
    with_rows,
)
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import csv_lines, workbook
from graphormer_sepnorm.interfaces.web.schemas import (
    AtomContributions,
    JobStatus,
    ModelFacts,
    Options,
    Problem,
    RowPrediction,
    SmilesList,
)

MOST_ROWS_AS_JSON = 1000
LINES_PER_PART = 500
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=600",
}
# Every answer but those of success is a sentence.
PROBLEMS: dict[int | str, dict] = {
    status: {"description": words, "content": {"application/json": {"schema": Problem.model_json_schema()}}}
    for status, words in {
        400: "the request cannot be read",
        401: "the token is missing",
        403: "the request comes from another page",
        404: "there is no such table or row",
        408: "the request came too slowly",
        409: "the table failed before its first row",
        413: "the request is too large",
        422: "the request cannot be used",
        503: "too much is waiting to be computed",
        504: "there is no picture",
    }.items()
}


class CsvResponse(Response):
    media_type = "text/csv"


class WorkbookResponse(Response):
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class SvgResponse(Response):
    media_type = "image/svg+xml"


def add_api(app: FastAPI, queue: JobQueue) -> None:
    """The addresses below ``/api``."""
    add_tables(app, queue)
    add_results(app, queue)
    add_pictures(app, queue)


def add_tables(app: FastAPI, queue: JobQueue) -> None:
    """Tables are given in, asked after and cancelled."""

    @app.get("/api/model", tags=["model"])
    async def model() -> ModelFacts:
        """Facts about the models."""
        return queue.facts

    @app.post("/api/tables", status_code=202, tags=["tables"])
    def predict_smiles(molecules: SmilesList) -> JobStatus:
        """Predicts SMILES, given as JSON."""
        options = Options.model_validate(molecules.model_dump(exclude={"smiles"}))
        return status_of(queue.submit(io.BytesIO(as_table(molecules.smiles)), ".csv", "the list", options))

    @app.post("/api/tables/file", status_code=202, tags=["tables"])
    def predict_file(
        options: FormOptions,
        file: Annotated[UploadFile, File(description="CSV, TSV, .smi, SDF or .xlsx")],
        smiles_column: SmilesColumn = "",
    ) -> JobStatus:
        """Predicts a table of molecules."""
        return status_of(submit_file(queue, file, options, smiles_column))

    @app.get("/api/tables/{id}", tags=["tables"])
    def progress(id: str) -> JobStatus:
        """How far a table is."""
        return status_of(known(queue, id))

    @app.delete("/api/tables/{id}", tags=["tables"])
    def cancel(id: str) -> JobStatus:
        """Cancels a table; what is done is kept."""
        job = known(queue, id)
        queue.cancel(job)
        return status_of(job)


def add_results(app: FastAPI, queue: JobQueue) -> None:
    """Finished tables, as JSON, CSV and Excel workbook."""

    @app.get("/api/tables/{id}/rows", tags=["tables"])
    def rows(
        id: str, start: Annotated[int, Query(ge=0)] = 0, count: Annotated[int, Query(ge=1, le=MOST_ROWS_AS_JSON)] = 100
    ) -> list[RowPrediction]:
        """Rows that are done, at most ``count`` from ``start`` on."""
        job = with_rows(known(queue, id))
        return rows_of(job, range(start, min(start + count, len(job.answers))))

    @app.get("/api/tables/{id}/predictions.csv", tags=["tables"], response_class=CsvResponse)
    def download(id: str) -> Response:
        """A finished table as CSV, also one of other models, before the page was restarted."""
        job = queue.find(id) or queue.store.load(id)
        if job is None:
            raise NO_TABLE
        headers = {"Content-Disposition": attachment(with_rows(job).download)}
        return StreamingResponse(in_parts(csv_lines(job)), 200, headers, "text/csv")

    @app.get("/api/tables/{id}/predictions.xlsx", tags=["tables"], response_class=WorkbookResponse)
    def download_workbook(id: str) -> Response:
        """The same as an Excel workbook, of a table of the same models."""
        job = with_rows(known(queue, id))
        headers = {"Content-Disposition": attachment(f"{PurePath(job.download).stem}.xlsx")}
        return WorkbookResponse(workbook(job), 200, headers)


def add_pictures(app: FastAPI, queue: JobQueue) -> None:
    """Structures, and what predictions rest on."""

    @app.get("/api/tables/{id}/rows/{row}/structure.svg", tags=["pictures"], response_class=SvgResponse)
    async def structure(id: str, row: int) -> Response:
        """The structure of a molecule."""
        read = row_at((await run_in_threadpool(known, queue, id)).rows, row)
        return SvgResponse(str(await answer_to(queue.ask("structure", read.smiles))), 200, PICTURE_HEADERS)

    @app.get("/api/tables/{id}/rows/{row}/nearest.svg", tags=["pictures"], response_class=SvgResponse)
    async def nearest(id: str, row: int) -> Response:
        """The structure of the nearest training molecule, where it is known and was asked for."""
        smiles = row_at((await run_in_threadpool(known, queue, id)).answers, row).nearest
        if not smiles:
            raise HTTPException(404, "the row has no nearest training molecule")
        return SvgResponse(str(await answer_to(queue.ask("structure", smiles))), 200, PICTURE_HEADERS)

    @app.get("/api/tables/{id}/rows/{row}/atoms", tags=["pictures"])
    async def atoms(id: str, row: int, target: str | None = None) -> AtomContributions:
        """The atoms that a prediction depends on; by default of the first target or the most probable class."""
        return (await explained_atoms(queue, id, row, target))[2]

    @app.get("/api/tables/{id}/rows/{row}/atoms.svg", tags=["pictures"], response_class=SvgResponse)
    async def atoms_picture(id: str, row: int, target: str | None = None) -> Response:
        """The same as a picture."""
        _, _, found = await explained_atoms(queue, id, row, target)
        return SvgResponse(found.picture, 200, PICTURE_HEADERS)


def attachment(name: str) -> str:
    """The header that names a download, of any characters (RFC 6266)."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


def in_parts(lines: Iterator[bytes]) -> Iterator[bytes]:
    while part := b"".join(islice(lines, LINES_PER_PART)):
        yield part
