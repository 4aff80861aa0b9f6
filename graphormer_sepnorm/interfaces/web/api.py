"""The addresses for programs, below ``/api``."""

import io
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, File, Query, UploadFile
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.interfaces.web.exchange import (
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
from graphormer_sepnorm.interfaces.web.jobs import saved
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
        return CsvResponse(*downloaded(id, ".csv"))

    @app.get("/api/tables/{id}/predictions.xlsx", tags=["tables"], response_class=WorkbookResponse)
    def download_workbook(id: str) -> Response:
        """The same as an Excel workbook."""
        return WorkbookResponse(*downloaded(id, ".xlsx"))

    def downloaded(id: str, suffix: str) -> tuple[bytes, int, dict[str, str]]:
        """The content, the status and the headers, whose name may have any characters (RFC 6266)."""
        job = with_rows(queue.find(id) or queue.store.load(id))
        name = quote(job.download(suffix), safe="", errors="replace")
        return saved(job, suffix), 200, {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}


def add_pictures(app: FastAPI, queue: JobQueue) -> None:
    """Structures, and what predictions rest on."""

    async def drawn(smiles: str) -> Response:
        return SvgResponse(str(await answer_to(queue.ask("structure", smiles))), 200, PICTURE_HEADERS)

    @app.get("/api/tables/{id}/rows/{row}/structure.svg", tags=["pictures"], response_class=SvgResponse)
    async def structure(id: str, row: int) -> Response:
        """The structure of a molecule."""
        return await drawn(row_at((await run_in_threadpool(known, queue, id)).rows, row).smiles)

    @app.get("/api/tables/{id}/rows/{row}/nearest.svg", tags=["pictures"], response_class=SvgResponse)
    async def nearest(id: str, row: int) -> Response:
        """The structure of the nearest training molecule, where it is known and was asked for."""
        smiles = row_at((await run_in_threadpool(known, queue, id)).answers, row).nearest
        if not smiles:
            raise HTTPException(404, "the row has no nearest training molecule")
        return await drawn(smiles)

    @app.get("/api/tables/{id}/rows/{row}/atoms", tags=["pictures"])
    async def atoms(id: str, row: int, target: str | None = None) -> AtomContributions:
        """The atoms that a prediction depends on; by default of the first target or the most probable class."""
        return (await explained_atoms(queue, id, row, target))[2]

    @app.get("/api/tables/{id}/rows/{row}/atoms.svg", tags=["pictures"], response_class=SvgResponse)
    async def atoms_picture(id: str, row: int, target: str | None = None) -> Response:
        """The same as a picture."""
        _, _, found = await explained_atoms(queue, id, row, target)
        return SvgResponse(found.picture, 200, PICTURE_HEADERS)
