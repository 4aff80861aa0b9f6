"""The page and its JSON: what each address answers."""

import asyncio
import csv
import io
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import islice
from pathlib import Path, PurePath
from typing import Annotated

from fastapi import FastAPI, File, Form, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.job_queue import Busy, Desk, State, Table, csv_lines
from graphormer_sepnorm.interfaces.web.middleware import Gate, same
from graphormer_sepnorm.interfaces.web.schemas import Answer, Atoms, Facts
from graphormer_sepnorm.interfaces.web.worker import Lost
from graphormer_sepnorm.tables.formats import DELIMITERS, TABLE_KINDS
from graphormer_sepnorm.version import __version__

HERE = Path(__file__).parent
ROWS_PER_PAGE = 50
MOST_ROWS_AS_JSON = 1000
MOST_COLUMNS_SHOWN = 3
LINES_PER_PART = 500
SVG = "image/svg+xml"
PICTURE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cache-Control": "private, max-age=600",
}
CSV_HEADERS = {"Content-Disposition": 'attachment; filename="predictions.csv"'}
NO_TABLE = HTTPException(404, "there is no such table: it was never here, or it is no longer kept")
RowNumber = Annotated[int, Query(ge=0)]


class Smiles(BaseModel):
    """Molecules to predict."""

    smiles: list[str] = Field(min_length=1, examples=[["CCO", "c1ccccc1O"]])


class Progress(BaseModel):
    """How far a table is."""

    id: str = Field(description="the table's, for the other addresses")
    state: State
    problem: str = Field(description="why it failed")
    rows: int = Field(description="in the table; 0 until it is read")
    done: int
    unreadable: int = Field(description="rows so far without a prediction")


class Row(Answer):
    """A row of a table with its answer."""

    row: int = Field(description="from 0")
    smiles: str
    fields: dict[str, str] = Field(description="what the row had, by column")


def as_text(text: str) -> str:
    """A text of a file; what is not UTF-8 is shown as such."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def progress_of(table: Table) -> Progress:
    return Progress(
        id=table.number,
        state=table.state,
        problem=as_text(table.problem),
        rows=len(table.rows),
        done=len(table.answers),
        unreadable=table.unreadable,
    )


def known(desk: Desk, id: str) -> Table:
    """The table with that address; raises HTTPException if there is none."""
    table = desk.tables.get(id)
    if table is None:
        raise NO_TABLE
    return table


def smiles_of(desk: Desk, id: str, row: int) -> str:
    """The SMILES of a row; raises HTTPException if there is none."""
    table = known(desk, id)
    if not 0 <= row < len(table.rows):
        raise HTTPException(404, "there is no such row")
    return table.rows[row].smiles


def rows_of(table: Table, start: int, count: int) -> list[Row]:
    """The rows that are done, among some."""
    columns = [as_text(column) for column in table.columns]
    answers = table.answers[start : start + count]
    return [
        Row(
            row=number,
            smiles=as_text(record.smiles),
            fields=dict(zip(columns, map(as_text, record.fields), strict=True)),
            **answer.model_dump(),
        )
        for number, (record, answer) in enumerate(zip(table.rows[start:], answers, strict=False), start)
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


async def reply(future: Future) -> object:
    """What the worker answers; raises HTTPException if it does not."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        raise HTTPException(503, "the page is closing") from None
    except Lost as error:
        raise HTTPException(504, f"there is no picture: {error}") from None


class Pages:
    """Jinja's templates; everything in them is escaped."""

    def __init__(self, desk: Desk):
        self.environment = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True), trim_blocks=True
        )
        self.environment.globals.update(facts=desk.facts, limits=desk.limits, version=__version__, kinds=TABLE_KINDS)

    def __call__(self, name: str, status: int = 200, headers: dict[str, str] | None = None, **values) -> HTMLResponse:
        return HTMLResponse(self.environment.get_template(name).render(values), status, headers)


def add_json(app: FastAPI, desk: Desk) -> None:
    """The addresses below ``/api``."""

    @app.get("/api/model", tags=["model"])
    def model() -> Facts:
        """What is known of the models."""
        return desk.facts

    @app.post("/api/tables", status_code=202, tags=["tables"])
    def predict_smiles(molecules: Smiles) -> Progress:
        """Predicts SMILES, given as JSON."""
        return progress_of(desk.submit(io.BytesIO(as_table(molecules.smiles)), ".csv", "the list"))

    @app.post("/api/tables/file", status_code=202, tags=["tables"])
    def predict_file(file: Annotated[UploadFile, File(description="CSV, TSV, .smi or SDF")]) -> Progress:
        """Predicts a table of molecules."""
        return progress_of(submit_file(desk, file))

    @app.get("/api/tables/{id}", tags=["tables"])
    def progress(id: str) -> Progress:
        """How far a table is."""
        return progress_of(known(desk, id))

    @app.delete("/api/tables/{id}", tags=["tables"])
    def cancel(id: str) -> Progress:
        """Cancels a table; what is done is kept."""
        table = known(desk, id)
        desk.cancel(table)
        return progress_of(table)

    @app.get("/api/tables/{id}/rows", tags=["tables"])
    def rows(
        id: str, start: RowNumber = 0, count: Annotated[int, Query(ge=1, le=MOST_ROWS_AS_JSON)] = 100
    ) -> list[Row]:
        """Rows that are done, at most ``count`` from ``start`` on."""
        return rows_of(known(desk, id), start, count)

    @app.get("/api/tables/{id}/predictions.csv", tags=["tables"], response_class=Response)
    def download(id: str) -> Response:
        """What is done as CSV; also of tables that were finished before the page was started anew."""
        table = desk.tables.get(id)
        if table is not None:
            return StreamingResponse(in_parts(csv_lines(table, desk.facts)), 200, CSV_HEADERS, "text/csv")
        if path := desk.shelf.find(id):
            return FileResponse(path, 200, CSV_HEADERS, "text/csv")
        raise NO_TABLE

    @app.get("/api/tables/{id}/rows/{row}/structure.svg", tags=["pictures"], response_class=Response)
    async def structure(id: str, row: int) -> Response:
        """The structure of a molecule."""
        return Response(str(await reply(desk.ask("structure", smiles_of(desk, id, row)))), 200, PICTURE_HEADERS, SVG)

    async def explained(id: str, row: int, target: str | None) -> Atoms:
        target = desk.facts.targets[0] if target is None else target
        found = await reply(desk.ask("atoms", smiles_of(desk, id, row), target))
        assert isinstance(found, Atoms)
        return found

    @app.get("/api/tables/{id}/rows/{row}/atoms", tags=["pictures"])
    async def atoms(id: str, row: int, target: str | None = None) -> Atoms:
        """Which atoms a prediction rests on; by default that of the first target."""
        return await explained(id, row, target)

    @app.get("/api/tables/{id}/rows/{row}/atoms.svg", tags=["pictures"], response_class=Response)
    async def atoms_picture(id: str, row: int, target: str | None = None) -> Response:
        """The same as a picture."""
        return Response((await explained(id, row, target)).picture, 200, PICTURE_HEADERS, SVG)


def submit_file(desk: Desk, file: UploadFile) -> Table:
    """Puts an uploaded table into the queue; of its name the ending alone is used, and the rest in messages."""
    name = PurePath(file.filename or "the table").name[:100]
    return desk.submit(file.file, PurePath(name).suffix.lower(), name)


def add_pages(app: FastAPI, desk: Desk, pages: Pages) -> None:
    """The addresses for people: whole pages, and parts of them for htmx."""

    def parts(table: Table, page: int = 1) -> dict:
        start = (page - 1) * ROWS_PER_PAGE
        rows = rows_of(table, start, ROWS_PER_PAGE)
        return {
            "progress": progress_of(table),
            "is_over": table.is_over,
            "rows": rows,
            "columns": [name for name in map(as_text, table.columns) if name.lower() != "smiles"][:MOST_COLUMNS_SHOWN],
            "page": page,
            "num_pages": -(-len(table.answers) // ROWS_PER_PAGE),
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
            table = submit_file(desk, file)
        elif text.strip():
            content = io.BytesIO(text.encode(errors="replace"))
            table = desk.submit(content, kind_of_text(text), "the text")
        else:
            raise InputError("there are no molecules: draw one, type or paste some SMILES, or choose a file")
        address = f"/tables/{table.number}"
        if "hx-request" in request.headers:
            return pages("table.html", headers={"HX-Push-Url": address}, **parts(table))
        return RedirectResponse(address, 303)

    @app.get("/tables/{id}", include_in_schema=False)
    def show(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("page.html", **parts(known(desk, id), page))

    @app.get("/tables/{id}/status", include_in_schema=False)
    def status(id: str, seen: RowNumber = 0) -> Response:
        """How far the table is; an event for its rows where there are more than the page has ``seen``."""
        found = parts(known(desk, id))
        changed = found["is_over"] or len(found["rows"]) > seen
        return pages("status.html", headers={"HX-Trigger": "rows-changed"} if changed else None, **found)

    @app.post("/tables/{id}/cancel", include_in_schema=False)
    def cancel(request: Request, id: str) -> Response:
        table = known(desk, id)
        desk.cancel(table)
        if "hx-request" in request.headers:
            return pages("status.html", headers={"HX-Trigger": "rows-changed"}, **parts(table))
        return RedirectResponse(f"/tables/{id}", 303)

    @app.get("/tables/{id}/rows", include_in_schema=False)
    def rows(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("rows.html", **parts(known(desk, id), page))

    @app.get("/tables/{id}/rows/{row}/atoms", include_in_schema=False)
    async def atoms(request: Request, id: str, row: int, target: str | None = None) -> Response:
        target = desk.facts.targets[0] if target is None else target
        smiles = smiles_of(desk, id, row)
        found = await reply(desk.ask("atoms", smiles, target))
        name = "atoms.html" if "hx-request" in request.headers else "atoms_page.html"
        return pages(name, atoms=found, id=id, row=row, target=target, smiles=as_text(smiles))


def add_entrance(app: FastAPI, pages: Pages, gate_token: str | None) -> None:
    """The page that asks for the token."""

    @app.get("/enter", include_in_schema=False)
    def ask() -> Response:
        return pages("enter.html")

    @app.post("/enter", include_in_schema=False)
    def enter(token: Annotated[str, Form()] = "") -> Response:
        if gate_token is not None and not same(token, gate_token):
            return pages("enter.html", 401, problem="This is not the token.")
        return Gate(app, 0, gate_token).admit("/") if gate_token else RedirectResponse("/", 303)


def add_problems(app: FastAPI, pages: Pages) -> None:
    """What cannot be answered: a sentence, as JSON below ``/api`` and as a page elsewhere."""

    def problem(request: Request, status: int, sentence: str) -> Response:
        sentence = as_text(sentence)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": sentence}, status)
        return pages("problem.html" if "hx-request" in request.headers else "page.html", status, problem=sentence)

    @app.exception_handler(InputError)
    async def of_input(request: Request, error: InputError) -> Response:
        return problem(request, 422, str(error))

    @app.exception_handler(Busy)
    async def of_queue(request: Request, error: Busy) -> Response:
        return problem(request, 503, "too much is waiting to be computed: try again in a while")

    @app.exception_handler(HTTPException)
    async def of_request(request: Request, error: HTTPException) -> Response:
        return problem(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    async def of_form(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return problem(request, 422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def make_app(desk: Desk, token: str | None = None, names: tuple[str, ...] | None = None) -> Gate:
    """The page as an ASGI application.

    Args:
        desk: computes.
        token: that is asked for; None: nothing is.
        names: of this machine, as ``Gate``.
    """
    app = FastAPI(
        title="graphormer-sepnorm",
        version=__version__,
        description="Predictions for molecules. A table is given in, its progress asked for, and its rows fetched.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    pages = Pages(desk)
    add_json(app, desk)
    add_pages(app, desk, pages)
    add_entrance(app, pages, token)
    add_problems(app, pages)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    return Gate(app, desk.limits.upload_bytes, token, names)
