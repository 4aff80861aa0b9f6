"""The addresses for people: whole pages, and parts of them for htmx."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.concurrency import run_in_threadpool

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.exchange import (
    answer_to,
    as_text,
    kind_of_text,
    known,
    rows_of,
    smiles_of,
    status_of,
    submit_file,
)
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.middleware import admit, same
from graphormer_sepnorm.tables.formats import TABLE_KINDS
from graphormer_sepnorm.version import __version__

HERE = Path(__file__).parent
ROWS_PER_PAGE = 50
MOST_COLUMNS_SHOWN = 3
RowNumber = Annotated[int, Query(ge=0)]


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


def shown_of(job: Job, page: int = 1) -> dict:
    """What templates show of a table."""
    start = (page - 1) * ROWS_PER_PAGE
    return {
        "progress": status_of(job),
        "is_over": job.is_over,
        "rows": rows_of(job, start, ROWS_PER_PAGE),
        "columns": [name for name in map(as_text, job.columns) if name.lower() != "smiles"][:MOST_COLUMNS_SHOWN],
        "page": page,
        "num_pages": -(-len(job.answers) // ROWS_PER_PAGE),
    }


def add_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    """The addresses for people: whole pages, and parts of them for htmx."""

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
            return pages("table.html", headers={"HX-Push-Url": address}, **shown_of(job))
        return RedirectResponse(address, 303)


def add_table_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    """The pages of a table, and parts of them."""

    @app.get("/tables/{id}", include_in_schema=False)
    def show(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("page.html", **shown_of(known(queue, id), page))

    @app.get("/tables/{id}/status", include_in_schema=False)
    def status(id: str, seen: RowNumber = 0) -> Response:
        """How far the table is; an event for its rows where there are more than the page has ``seen``."""
        found = shown_of(known(queue, id))
        changed = found["is_over"] or len(found["rows"]) > seen
        return pages("status.html", headers={"HX-Trigger": "rows-changed"} if changed else None, **found)

    @app.post("/tables/{id}/cancel", include_in_schema=False)
    def cancel(request: Request, id: str) -> Response:
        job = known(queue, id)
        queue.cancel(job)
        if "hx-request" in request.headers:
            return pages("status.html", headers={"HX-Trigger": "rows-changed"}, **shown_of(job))
        return RedirectResponse(f"/tables/{id}", 303)

    @app.get("/tables/{id}/rows", include_in_schema=False)
    def rows(id: str, page: Annotated[int, Query(ge=1, le=10**6)] = 1) -> Response:
        return pages("rows.html", **shown_of(known(queue, id), page))

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
