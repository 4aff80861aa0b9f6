"""The addresses for people: whole pages, and parts of them for htmx."""

import io
import re
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web import api, view
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.middleware import admit, same
from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, Options, TargetPrediction
from graphormer_sepnorm.predict.domain import OTHER_CONDITIONS, similarity_words
from graphormer_sepnorm.predict.units import measured_words
from graphormer_sepnorm.report.page import data_uri
from graphormer_sepnorm.runs.info import limit_meaning, score_words
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.tables.formats import TABLE_KINDS
from graphormer_sepnorm.tables.formats.text import COLUMNS
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.version import __version__

CONFIDENCES = 0.8, 0.9, 0.95
LONG_NUMBER = re.compile(r"[-+]?\d{1,15}\.\d{9,}")
MEANINGS = {
    "weights": "how much each part of the model counts in the prediction",
    "vocabulary": "which molecules the model can read",
    "salts": "which part of a salt or a mixture the model reads",
}
MOLECULES_COMPARED = (2, 3)
ROWS_CHANGED = {"HX-Trigger": "rows-changed"}
AskedView = Annotated[view.View, Query()]


class Pages:
    """Jinja's templates; everything in them is escaped."""

    def __init__(self, queue: JobQueue):
        self.environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=select_autoescape(default=True),
            trim_blocks=True,
        )
        facts = queue.facts
        self.environment.filters.update(
            number=as_shown,
            unit=in_unit,
            measured=lambda value, known: measured_words(value, known.scale, known.unit).removeprefix("= "),
            sentence=as_sentence,
            limit_meaning=limit_meaning,
            rounded=as_rounded,
            similarity=similarity_words,
            data_uri=lambda svg: data_uri(svg.encode()),
        )
        confidence = facts.confidence
        self.environment.globals.update(
            facts=facts,
            limits=queue.limits,
            version=__version__,
            zip=zip,
            grouped_bars=partial(view.grouped_bars, facts),
            kinds=TABLE_KINDS,
            knows_excel=all(map(find_spec, ("openpyxl", "xlsxwriter"))),
            condition=api.CONDITION,
            smi_columns=COLUMNS,
            no_columns=view.NO_COLUMNS,
            other_conditions=OTHER_CONDITIONS,
            confidences=[] if confidence is None else sorted({confidence, *CONFIDENCES}),
            usual=Options(interval=confidence, domain=facts.knows_domain, alerts=True, properties=True),
            meanings=MEANINGS,
            descriptions={target: known.description for target, known in facts.endpoints.items()},
        )

    def __call__(
        self, name: str, status: int = 200, headers: Mapping[str, str] | None = None, **values
    ) -> HTMLResponse:
        return HTMLResponse(self.environment.get_template(name).render(values), status, headers)


def as_shown(value: float, decimals: int | None) -> str:
    """A number with so many decimals; with four digits if that is not known."""
    return f"{value:.4g}" if decimals is None else f"{round(value, decimals) + 0.0:.{decimals}f}"


def as_rounded(text: str) -> str:
    """A field of a table; a number with more decimals than anyone measures with seven significant digits."""
    return f"{float(text):.7g}" if LONG_NUMBER.fullmatch(text) else text


def in_unit(one: TargetPrediction, endpoint: EndpointFacts) -> tuple[str, str]:
    """A prediction of a logarithm in the unit of the measurements, and its interval; "" without one."""
    value = measured_words(one.value, endpoint.scale, endpoint.unit)
    both = measured_words(one.value, endpoint.scale, endpoint.unit, one.low, one.high)
    return value.removeprefix("= "), both.removeprefix(value)[2:-1]


def as_sentence(text: str) -> str:
    """A message with a capital, unless it begins with the name of a file, and a full stop."""
    first, rest = text[:1], text[1:]
    begins_with_name = "." in text.split(" ", 1)[0]
    return f"{first if begins_with_name else first.upper()}{rest}{'' if text.endswith(('.', '?', '!')) else '.'}"


def endpoint_columns(facts: ModelFacts) -> dict[str, list[str]]:
    """The columns of the table of targets on the page of the model, by title, without those that are empty."""
    known = [facts.endpoints.get(target, EndpointFacts()) for target in facts.targets]
    columns = {
        "Training molecules": ["" if one.molecules is None else f"{one.molecules:,}" for one in known],
        "RMSE out of fold": ["" if one.rmse_out_of_fold is None else shown(one.rmse_out_of_fold) for one in known],
        "On test molecules": [
            "" if one.score is None else f"{METRICS[one.metric].title} {shown(one.score)}" for one in known
        ],
        f"{facts.about.get('metric')} on test molecules": [
            "" if one.test is None else score_words(one.test, one.test_interval, one.test_molecules) for one in known
        ],
    }
    return {title: texts for title, texts in columns.items() if any(texts)}


def add_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    @app.get("/", include_in_schema=False)
    def start() -> Response:
        return pages("page.html")

    @app.get("/about", include_in_schema=False)
    def about() -> Response:
        return pages("about.html", columns=endpoint_columns(queue.facts))

    @app.post("/tables", include_in_schema=False)
    def submit(
        request: Request,
        options: api.FormOptions,
        text: Annotated[str, Form()] = "",
        file: UploadFile | None = None,
        smiles_column: api.SmilesColumn = "",
        columns: Annotated[tuple[str, ...], Form()] = (),
    ) -> Response:
        if file is not None and file.filename:
            job = api.submit_file(queue, file, options, smiles_column)
        elif text.strip():
            content, kind = io.BytesIO(text.encode(errors="replace")), api.kind_of_text(text, smiles_column)
            job = queue.submit(content, kind, "the text", options, smiles_column)
        else:
            raise InputError("there are no molecules: draw one, type or paste some SMILES, or choose a file")
        return led_to(request, job, view.View(columns=list(columns)))

    @app.post("/tables/{id}/again", include_in_schema=False)
    def again(request: Request, job: api.KnownJob, smiles_column: api.SmilesColumn) -> Response:
        return led_to(request, queue.predict_again(job, smiles_column), view.View())

    def led_to(request: Request, job: Job, asked: view.View) -> Response:
        """The page of a table that was just given in, or for htmx the part that shows it."""
        address = asked.address_of(job)
        if "hx-request" in request.headers:
            shown = view.shown_of(queue.facts, job, asked)
            return pages("table.html", headers={"HX-Push-Url": address}, **shown)
        return RedirectResponse(address, 303)


def add_table_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    @app.get("/tables/{id}", include_in_schema=False)
    def show(job: api.KnownJob, asked: AskedView) -> Response:
        return pages("page.html", **view.shown_of(queue.facts, job, asked))

    @app.get("/tables/{id}/status", include_in_schema=False)
    def status(job: api.KnownJob, seen: Annotated[int, Query(ge=0)] = 0) -> Response:
        """How far the table is; an event for its rows where there are more than the page has ``seen``."""
        headers = ROWS_CHANGED if job.is_over or len(job.answers) > seen else None
        return pages("status.html", headers=headers, **view.progress_of(job))

    @app.post("/tables/{id}/cancel", include_in_schema=False)
    def cancel(request: Request, job: api.KnownJob) -> Response:
        queue.cancel(job)
        if "hx-request" in request.headers:
            return pages("status.html", headers=ROWS_CHANGED, **view.progress_of(job))
        return RedirectResponse(f"/tables/{job.number}", 303)

    @app.get("/tables/{id}/rows", include_in_schema=False)
    def rows(request: Request, job: api.KnownJob, asked: AskedView) -> Response:
        """The rows of a view, which becomes a step of the browser's history unless they only arrive."""
        shown = view.shown_of(queue.facts, job, asked)
        source = request.headers.get("hx-source", "")
        headers = None if source == "div#rows" else {"HX-Push-Url": shown["view"].address_of(job)}
        return pages("rows.html", headers=headers, is_choosing=source.startswith(("form#", "a#")), **shown)

    @app.get("/tables/{id}/rows/{row}", include_in_schema=False)
    def molecule(job: api.KnownJob, row: int, asked: AskedView) -> Response:
        """All that is known of one molecule, with the way back to the view that it was opened from."""
        api.row_at(job.answers, row)
        order = view.shown_rows(job, asked)
        place = order.index(row) if row in order else None
        near = [] if place is None else [("Previous", order[:place][-1:]), ("Next", order[place + 1 : place + 2])]
        found = {"row": api.rows_of(job, [row])[0], "near": near, "title": view.title_of(job, row)}
        return pages("molecule.html", **view.shown_of(queue.facts, job, asked) | found)

    @app.get("/tables/{id}/rows/{row}/atoms", include_in_schema=False)
    def atoms(request: Request, job: api.KnownJob, row: int, explained: api.Explained) -> Response:
        name = "atoms.html" if "hx-request" in request.headers else "atoms_page.html"
        smiles, title, (target, found) = as_text(job.rows[row].smiles), view.title_of(job, row), explained
        return pages(name, atoms=found, id=job.number, row=row, target=target, smiles=smiles, title=title)

    @app.get("/tables/{id}/compare", include_in_schema=False)
    def compare(job: api.KnownJob, row: Annotated[tuple[int, ...], Query()] = ()) -> Response:
        numbers = sorted(set(row))
        if len(numbers) not in MOLECULES_COMPARED:
            raise InputError("choose two or three molecules to compare, by their boxes in the table")
        for number in numbers:
            api.row_at(job.answers, number)
        found = [(view.title_of(job, row.row), row) for row in api.rows_of(job, numbers)]
        return pages("compare.html", **view.shown_of(queue.facts, job), compared=found)


def add_entrance(app: FastAPI, pages: Pages, true_token: str | None) -> None:
    @app.get("/enter", include_in_schema=False)
    def ask() -> Response:
        return pages("enter.html")

    @app.post("/enter", include_in_schema=False)
    def enter(request: Request, token: Annotated[str, Form()] = "") -> Response:
        if true_token is not None and not same(token, true_token):
            return pages("enter.html", 401, problem="This is not the token.")
        return admit(request, "/", true_token) if true_token else RedirectResponse("/", 303)
