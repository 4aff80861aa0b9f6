"""The addresses for programs, below ``/api``."""

import io
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, File, Query, UploadFile
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from graphormer_sepnorm.interfaces.web import exchange, schemas
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import saved

MOST_ROWS_AS_JSON = 1000
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=600",
}
# Every answer but those of success is a sentence.
PROBLEMS: dict[int | str, dict] = {
    status: {"description": words, "content": {"application/json": {"schema": schemas.Problem.model_json_schema()}}}
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
    async def model() -> schemas.ModelFacts:
        """Facts about the models."""
        return queue.facts

    @app.post("/api/tables", status_code=202, tags=["tables"])
    def predict_smiles(molecules: schemas.SmilesList) -> schemas.JobStatus:
        """Predicts SMILES, given as JSON."""
        options = schemas.Options.model_validate(molecules.model_dump(exclude={"smiles"}))
        content = io.BytesIO(exchange.as_table(molecules.smiles))
        return exchange.status_of(queue.submit(content, ".csv", "the list", options))

    @app.post("/api/tables/file", status_code=202, tags=["tables"])
    def predict_file(
        options: exchange.FormOptions,
        file: Annotated[UploadFile, File(description="CSV, TSV, .smi, SDF or .xlsx")],
        smiles_column: exchange.SmilesColumn = "",
    ) -> schemas.JobStatus:
        """Predicts a table of molecules."""
        return exchange.status_of(exchange.submit_file(queue, file, options, smiles_column))

    @app.get("/api/tables/{id}", tags=["tables"])
    def progress(job: exchange.KnownJob) -> schemas.JobStatus:
        """How far a table is."""
        return exchange.status_of(job)

    @app.delete("/api/tables/{id}", tags=["tables"])
    def cancel(job: exchange.KnownJob) -> schemas.JobStatus:
        """Cancels a table; what is done is kept."""
        queue.cancel(job)
        return exchange.status_of(job)


def add_results(app: FastAPI, queue: JobQueue) -> None:
    """Finished tables, as JSON, CSV and Excel workbook."""

    @app.get("/api/tables/{id}/rows", tags=["tables"])
    def rows(
        job: exchange.KnownJob,
        start: Annotated[int, Query(ge=0)] = 0,
        count: Annotated[int, Query(ge=1, le=MOST_ROWS_AS_JSON)] = 100,
    ) -> list[schemas.RowPrediction]:
        """Rows that are done, at most ``count`` from ``start`` on."""
        exchange.refuse_empty(job)
        return exchange.rows_of(job, range(start, min(start + count, len(job.answers))))

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
        job = exchange.refuse_empty(queue.find(id) or queue.store.load(id))
        name = quote(job.download(suffix), safe="", errors="replace")
        return saved(job, suffix), 200, {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}


def add_pictures(app: FastAPI, queue: JobQueue) -> None:
    """Structures, and what predictions rest on."""

    async def drawn(smiles: str) -> Response:
        picture = await exchange.answer_to(queue.ask("structure", smiles))
        return SvgResponse(str(picture), 200, PICTURE_HEADERS)

    @app.get("/api/tables/{id}/rows/{row}/structure.svg", tags=["pictures"], response_class=SvgResponse)
    async def structure(job: exchange.KnownJob, row: int) -> Response:
        """The structure of a molecule."""
        return await drawn(exchange.row_at(job.rows, row).smiles)

    @app.get("/api/tables/{id}/rows/{row}/nearest.svg", tags=["pictures"], response_class=SvgResponse)
    async def nearest(job: exchange.KnownJob, row: int) -> Response:
        """The structure of the nearest training molecule, where it is known and was asked for."""
        if smiles := exchange.row_at(job.answers, row).nearest:
            return await drawn(smiles)
        raise HTTPException(404, "the row has no nearest training molecule")

    @app.get("/api/tables/{id}/rows/{row}/atoms", tags=["pictures"])
    async def atoms(explained: exchange.Explained) -> schemas.AtomContributions:
        """The atoms that a prediction depends on; by default of the first target or the most probable class."""
        return explained[1]

    @app.get("/api/tables/{id}/rows/{row}/atoms.svg", tags=["pictures"], response_class=SvgResponse)
    async def atoms_picture(explained: exchange.Explained) -> Response:
        """The same as a picture."""
        return SvgResponse(explained[1].picture, 200, PICTURE_HEADERS)
