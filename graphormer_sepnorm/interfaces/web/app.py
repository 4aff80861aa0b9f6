"""The page and its JSON: what each address answers."""

import asyncio
import csv
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated

from fastapi import FastAPI, File, Form, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue, QueueFull
from graphormer_sepnorm.interfaces.web.jobs import Job, csv_lines
from graphormer_sepnorm.interfaces.web.middleware import admit, middleware, same, too_large
from graphormer_sepnorm.interfaces.web.schemas import (
    AtomContributions,
    JobStatus,
    ModelFacts,
    Problem,
    RowPrediction,
    SmilesList,
)
from graphormer_sepnorm.interfaces.web.worker import NoAnswer
from graphormer_sepnorm.tables.formats import DELIMITERS, TABLE_KINDS
from graphormer_sepnorm.version import __version__

HERE = Path(__file__).parent
ROWS_PER_PAGE = 50
MOST_ROWS_AS_JSON = 1000
MOST_COLUMNS_SHOWN = 3
LINES_PER_PART = 500
MOST_SHOWN_OF_NAME = 100
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=600",
}
CSV_HEADERS = {"Content-Disposition": 'attachment; filename="predictions.csv"'}
NO_TABLE = HTTPException(404, "there is no such table: it was never here, or it is no longer kept")
RowNumber = Annotated[int, Query(ge=0)]
# Every answer but those of success is a sentence.
PROBLEMS: dict[int | str, dict] = {
    status: {"description": words, "content": {"application/json": {"schema": Problem.model_json_schema()}}}
    for status, words in {
        400: "the request cannot be read",
        401: "the token is missing",
        403: "the request comes from another page",
        404: "there is no such table or row",
        408: "the request came too slowly",
        413: "the request is too large",
        422: "the request cannot be used",
        503: "too much is waiting to be computed",
        504: "there is no picture",
    }.items()
}


class CsvResponse(Response):
    media_type = "text/csv"


class SvgResponse(Response):
    media_type = "image/svg+xml"


def as_text(text: str) -> str:
    """A text of a file; what is not UTF-8 is shown as such."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def status_of(job: Job) -> JobStatus:
    return JobStatus(
        id=job.number,
        state=job.state,
        problem=as_text(job.problem),
        rows=len(job.rows),
        done=len(job.answers),
        unreadable=job.unreadable,
    )


def known(queue: JobQueue, id: str) -> Job:
    """The table with that address; raises HTTPException if there is none."""
    job = queue.find(id)
    if job is None:
        raise NO_TABLE
    return job


def smiles_of(queue: JobQueue, id: str, row: int) -> str:
    """The SMILES of a row; raises HTTPException if there is none."""
    job = known(queue, id)
    if not 0 <= row < len(job.rows):
        raise HTTPException(404, "there is no such row")
    return job.rows[row].smiles


def rows_of(job: Job, start: int, count: int) -> list[RowPrediction]:
    """The rows that are done, among some."""
    columns = [as_text(column) for column in job.columns]
    answers = job.answers[start : start + count]
    return [
        RowPrediction(
            row=number,
            smiles=as_text(record.smiles),
            fields=dict(zip(columns, map(as_text, record.fields), strict=True)),
            **answer.model_dump(),
        )
        for number, (record, answer) in enumerate(zip(job.rows[start:], answers, strict=False), start)
    ]


def in_parts(lines: Iterator[bytes]) -> Iterator[bytes]:
    while part := b"".join(islice(lines, LINES_PER_PART)):
        yield part


def as_table(smiles: list[str]) -> bytes:
    """A CSV with one column."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["smiles"], *([one] for one in smiles)])
    return text.getvalue().encode(errors="replace")


def kind_of_text(text: str) -> str:
    """What a pasted text is: a CSV if its first line names a column smiles among others, else SMILES and names."""
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip().lower()
    is_table = any("smiles" in [name.strip(' "') for name in first.split(mark)] for mark in DELIMITERS if mark in first)
    return ".csv" if is_table else ".smi"


async def answer_to(future: Future) -> object:
    """What the worker answers; raises HTTPException if it does not."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        raise HTTPException(503, "the page is closing") from None
    except NoAnswer as error:
        raise HTTPException(504, f"there is no picture: {error}") from None


class Pages:
    """Jinja's templates; everything in them is escaped."""

    def __init__(self, queue: JobQueue):
        self.environment = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True), trim_blocks=True
        )
        self.environment.globals.update(facts=queue.facts, limits=queue.limits, version=__version__, kinds=TABLE_KINDS)

    def __call__(
        self, name: str, status: int = 200, headers: Mapping[str, str] | None = None, **values
    ) -> HTMLResponse:
        return HTMLResponse(self.environment.get_template(name).render(values), status, headers)


def add_json(app: FastAPI, queue: JobQueue) -> None:
    """The addresses below ``/api``."""

    @app.get("/api/model", tags=["model"])
    async def model() -> ModelFacts:
        """What is known of the models."""
        return queue.facts

    @app.post("/api/tables", status_code=202, tags=["tables"])
    def predict_smiles(molecules: SmilesList) -> JobStatus:
        """Predicts SMILES, given as JSON."""
        return status_of(queue.submit(io.BytesIO(as_table(molecules.smiles)), ".csv", "the list"))

    @app.post("/api/tables/file", status_code=202, tags=["tables"])
    def predict_file(file: Annotated[UploadFile, File(description="CSV, TSV, .smi or SDF")]) -> JobStatus:
        """Predicts a table of molecules."""
        return status_of(submit_file(queue, file))

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

    @app.get("/api/tables/{id}/rows", tags=["tables"])
    def rows(
        id: str, start: RowNumber = 0, count: Annotated[int, Query(ge=1, le=MOST_ROWS_AS_JSON)] = 100
    ) -> list[RowPrediction]:
        """Rows that are done, at most ``count`` from ``start`` on."""
        return rows_of(known(queue, id), start, count)

    @app.get("/api/tables/{id}/predictions.csv", tags=["tables"], response_class=CsvResponse)
    def download(id: str) -> Response:
        """What is done as CSV; also of tables that were finished before the page was started anew."""
        job = queue.find(id)
        if job is not None:
            return StreamingResponse(in_parts(csv_lines(job, queue.facts)), 200, CSV_HEADERS, "text/csv")
        if path := queue.store.find_csv(id):
            return FileResponse(path, 200, CSV_HEADERS, "text/csv")
        raise NO_TABLE

    @app.get("/api/tables/{id}/rows/{row}/structure.svg", tags=["pictures"], response_class=SvgResponse)
    async def structure(id: str, row: int) -> Response:
        """The structure of a molecule."""
        smiles = await run_in_threadpool(smiles_of, queue, id, row)
        return SvgResponse(str(await answer_to(queue.ask("structure", smiles))), 200, PICTURE_HEADERS)

    async def explained(id: str, row: int, target: str | None) -> AtomContributions:
        target = queue.facts.targets[0] if target is None else target
        smiles = await run_in_threadpool(smiles_of, queue, id, row)
        found = await answer_to(queue.ask("atoms", smiles, target))
        assert isinstance(found, AtomContributions)
        return found

    @app.get("/api/tables/{id}/rows/{row}/atoms", tags=["pictures"])
    async def atoms(id: str, row: int, target: str | None = None) -> AtomContributions:
        """Which atoms a prediction rests on; by default that of the first target."""
        return await explained(id, row, target)

    @app.get("/api/tables/{id}/rows/{row}/atoms.svg", tags=["pictures"], response_class=SvgResponse)
    async def atoms_picture(id: str, row: int, target: str | None = None) -> Response:
        """The same as a picture."""
        return SvgResponse((await explained(id, row, target)).picture, 200, PICTURE_HEADERS)


def submit_file(queue: JobQueue, file: UploadFile) -> Job:
    """Puts an uploaded table into the queue; only the suffix of its name is used, and the name in messages."""
    name = PurePath(file.filename or "the table")
    shown = name.name if len(name.name) <= MOST_SHOWN_OF_NAME else f"{name.name[:MOST_SHOWN_OF_NAME]}..."
    return queue.submit(file.file, name.suffix.lower(), shown)


def add_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    """The addresses for people: whole pages, and parts of them for htmx."""

    def parts(job: Job, page: int = 1) -> dict:
        start = (page - 1) * ROWS_PER_PAGE
        return {
            "progress": status_of(job),
            "is_over": job.is_over,
            "rows": rows_of(job, start, ROWS_PER_PAGE),
            "columns": [name for name in map(as_text, job.columns) if name.lower() != "smiles"][:MOST_COLUMNS_SHOWN],
            "page": page,
            "num_pages": -(-len(job.answers) // ROWS_PER_PAGE),
        }

    @app.get("/", include_in_schema=False)
    def start() -> Response:
        return pages("page.html")

    @app.get("/about", include_in_schema=False)
    def about() -> Response:
        return pages("about.html", schema=app.openapi())

    @app.post("/tables", include_in_schema=False)
    def submit(request: Request, text: Annotated[str, Form()] = "", file: UploadFile | None = None) -> Response:
        if file is not None and file.filename:
            job = submit_file(queue, file)
        elif text.strip():
            content = io.BytesIO(text.encode(errors="replace"))
            job = queue.submit(content, kind_of_text(text), "the text")
        else:
            raise InputError("there are no molecules: draw one, type or paste some SMILES, or choose a file")
        address = f"/tables/{job.number}"
        if "hx-request" in request.headers:
            return pages("table.html", headers={"HX-Push-Url": address}, **parts(job))
        return RedirectResponse(address, 303)

    @app.get("/tables/{id}", include_in_schema=False)
    def show(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("page.html", **parts(known(queue, id), page))

    @app.get("/tables/{id}/status", include_in_schema=False)
    def status(id: str, seen: RowNumber = 0) -> Response:
        """How far the table is; an event for its rows where there are more than the page has ``seen``."""
        found = parts(known(queue, id))
        changed = found["is_over"] or len(found["rows"]) > seen
        return pages("status.html", headers={"HX-Trigger": "rows-changed"} if changed else None, **found)

    @app.post("/tables/{id}/cancel", include_in_schema=False)
    def cancel(request: Request, id: str) -> Response:
        job = known(queue, id)
        queue.cancel(job)
        if "hx-request" in request.headers:
            return pages("status.html", headers={"HX-Trigger": "rows-changed"}, **parts(job))
        return RedirectResponse(f"/tables/{id}", 303)

    @app.get("/tables/{id}/rows", include_in_schema=False)
    def rows(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("rows.html", **parts(known(queue, id), page))

    @app.get("/tables/{id}/rows/{row}/atoms", include_in_schema=False)
    async def atoms(request: Request, id: str, row: int, target: str | None = None) -> Response:
        target = queue.facts.targets[0] if target is None else target
        smiles = await run_in_threadpool(smiles_of, queue, id, row)
        found = await answer_to(queue.ask("atoms", smiles, target))
        name = "atoms.html" if "hx-request" in request.headers else "atoms_page.html"
        return pages(name, atoms=found, id=id, row=row, target=target, smiles=as_text(smiles))


def add_entrance(app: FastAPI, pages: Pages, true_token: str | None) -> None:
    """The page that asks for the token."""

    @app.get("/enter", include_in_schema=False)
    def ask() -> Response:
        return pages("enter.html")

    @app.post("/enter", include_in_schema=False)
    def enter(token: Annotated[str, Form()] = "") -> Response:
        if true_token is not None and not same(token, true_token):
            return pages("enter.html", 401, problem="This is not the token.")
        return admit("/", true_token) if true_token else RedirectResponse("/", 303)


def add_problems(app: FastAPI, pages: Pages, of_size: str) -> None:
    """What cannot be answered: a sentence, as JSON below ``/api`` and as a page elsewhere."""

    def problem(request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
        sentence = as_text(sentence)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": sentence}, status, headers)
        name = "problem.html" if "hx-request" in request.headers else "page.html"
        return pages(name, status, headers=headers, problem=sentence)

    @app.exception_handler(InputError)
    async def of_input(request: Request, error: InputError) -> Response:
        return problem(request, 422, str(error))

    @app.exception_handler(QueueFull)
    async def of_queue(request: Request, error: QueueFull) -> Response:
        return problem(request, 503, "too much is waiting to be computed: try again in a while")

    @app.exception_handler(HTTPException)
    async def of_request(request: Request, error: HTTPException) -> Response:
        sentence = of_size if error.status_code == 413 else str(error.detail)
        return problem(request, error.status_code, sentence, error.headers)

    @app.exception_handler(RequestValidationError)
    async def of_form(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return problem(request, 422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def make_app(queue: JobQueue, token: str | None = None, names: tuple[str, ...] | None = None) -> FastAPI:
    """The page as an ASGI application.

    Args:
        queue: computes.
        token, names: as ``middleware``.
    """
    app = FastAPI(
        title="graphormer-sepnorm",
        version=__version__,
        description="Predictions for molecules. A table is given in, its progress asked for, and its rows fetched.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
        middleware=middleware(queue.limits.upload_bytes, token, names),
    )
    pages = Pages(queue)
    add_json(app, queue)
    add_pages(app, queue, pages)
    add_entrance(app, pages, token)
    add_problems(app, pages, too_large(queue.limits.upload_bytes))
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    return app
