"""The addresses for people: whole pages, and parts of them for htmx, with rows and columns as they are asked for."""

import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader
from pydantic import BaseModel, Field

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web import api, schemas
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import Job, cell_at
from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, MoleculePrediction
from graphormer_sepnorm.output.predict_table import FAMILIAR
from graphormer_sepnorm.predict.describing import measured_words
from graphormer_sepnorm.predict.domain import OTHER_CONDITIONS, similarity_words
from graphormer_sepnorm.report.words import data_uri
from graphormer_sepnorm.runs.info import limit_meaning, score_words
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.tables.formats import TABLE_KINDS
from graphormer_sepnorm.tables.formats.cells import SPREADSHEET_KINDS
from graphormer_sepnorm.tables.formats.text import COLUMNS
from graphormer_sepnorm.tables.label_text import is_number, shortened
from graphormer_sepnorm.tables.rows import id_column_among, name_of
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.version import __version__

CONFIDENCES = 0.8, 0.9, 0.95
LONG_NUMBER = re.compile(r"[-+]?\d{1,15}\.\d{9,}")
MOLECULES_COMPARED = (2, 3)
ROWS_CHANGED = {"HX-Trigger": "rows-changed"}
ROWS_PER_PAGE = 50
NOTHING = (None, "")
NO_COLUMNS = "no columns"  # among the columns of a view: none is shown, not the usual ones, if there is no other
MOST_FIELDS = 50
ShownKind = Literal["class", "target", "nearest", "alerts", "smiles", "property", "field"]
STANDINGS = "worse", "middle", "better"
USUAL = "class", "target", "nearest", "alerts"
OTHERS = "Other endpoints"  # those without a group
AND_OTHERS = re.compile(r" and \d+ others?$")


class View(BaseModel):
    """The rows that an address shows, in the order of the table or sorted, those without a value last."""

    page: int = Field(default=1, ge=1, le=10**6)
    sort: str = ""  # a column of the predictions, or a width in ``width_names``
    order: Literal["ascending", "descending"] = "ascending"
    find: str = ""  # in a field of the row, in capitals or not
    only: Literal["all", "predicted", "warned", "unreadable"] = "all"
    columns: list[str] = []  # in this order; empty: the usual ones; only ``NO_COLUMNS``: none

    def address(self, **changes: object) -> str:
        """The query of an address with these changes, without what is usual."""
        return urlencode(self.model_copy(update=changes).model_dump(exclude_defaults=True), doseq=True)

    def address_of(self, job: Job) -> str:
        return f"/tables/{job.number}?{self.address()}".removesuffix("?")

    def keeps(self, answer: MoleculePrediction) -> bool:
        error, warning = bool(answer.error), bool(answer.warning)
        return {"all": True, "predicted": not error, "warned": warning, "unreadable": error}[self.only]


AskedView = Annotated[View, Query()]
FIRST_VIEW = View()


def offered_columns(facts: ModelFacts, job: Job) -> dict[str, ShownKind]:
    """The columns that can be shown, by name: the usual ones first, and at most ``MOST_FIELDS`` of the upload."""
    predicted = {column.place[1] for column in job.added if column.place[0] == "predictions"}
    names: dict[ShownKind, list[str]] = {
        "class": ["Class"] * bool(facts.class_names),
        "nearest": ["Nearest training molecule"] * job.options.domain,
        "target": [target for target in facts.targets if target in predicted],
        "alerts": ["Alerts"] * job.options.alerts,
        "smiles": ["SMILES"],
        "property": [column.name for column in job.added if column.place[0] == "properties"],
        "field": [name for name, own in api.unique_names(job).items() if own != job.smiles_column][:MOST_FIELDS],
    }
    kinds: dict[str, ShownKind] = {}
    for kind, each in names.items():
        kinds |= {name: kind for name in each if name not in kinds}
    return kinds


def chosen_columns(offered: dict[str, ShownKind], view: View) -> list[str]:
    chosen = [name for name in dict.fromkeys(view.columns) if name in offered]
    return chosen if chosen or NO_COLUMNS in view.columns else [name for name in offered if offered[name] in USUAL]


def listed_columns(offered: Iterable[str], chosen: list[str]) -> list[str]:
    """All columns: the chosen ones in their order, each other one after the column that it is offered after."""
    listed, place = [*chosen], 0
    for name in offered:
        if name not in chosen:
            listed.insert(place, name)
        place = listed.index(name) + 1
    return listed


def shown_rows(job: Job, view: View) -> list[int]:
    answers, text = list(job.answers), view.find.strip().lower()
    rows = [
        number
        for number, answer in enumerate(answers)
        if view.keeps(answer) and any(text in as_text(field).lower() for field in job.rows[number].fields)
    ]
    places = {column.name: column.place for column in job.added} | widths(job)
    if view.sort not in places:
        return rows
    cells: dict[int, Any] = {row: cell_at(answers[row], places[view.sort]) for row in rows}
    filled = [row for row in rows if cells[row] not in NOTHING]
    rest = [row for row in rows if cells[row] in NOTHING]
    return sorted(filled, key=cells.__getitem__, reverse=view.order == "descending") + rest


def widths(job: Job) -> dict[str, list[str]]:
    """The widths of intervals that rows can be sorted by, one for each target that has them: their places by name."""
    targets = [column.place[1] for column in job.added if column.place[-1] == "low"]
    return {f"interval width of {target}": ["predictions", target, "width"] for target in targets}


def progress_of(job: Job) -> dict:
    return {"progress": api.status_of(job), "is_over": job.is_over, "options": job.options, "sheets": job.sheets}


def shown_of(facts: ModelFacts, job: Job, view: View = FIRST_VIEW) -> dict:
    progress = progress_of(job)  # before the rows, so that none is missed that comes meanwhile
    numbers = shown_rows(job, view)
    offered = offered_columns(facts, job)
    chosen = chosen_columns(offered, view)
    usual = chosen == chosen_columns(offered, FIRST_VIEW)
    sorted_by = "value", "class_name", "similarity"
    sortable = [each.name for each in job.added if each.place[-1] in sorted_by or each.name == view.sort]
    return progress | {
        "rows": api.answered_rows(job, numbers[(view.page - 1) * ROWS_PER_PAGE :][:ROWS_PER_PAGE]),
        "num_rows": len(numbers),
        "groups": grouped(facts, [name for name, kind in offered.items() if kind == "target"]),
        "first_row": job.header + 1,
        "fields": [name for name, kind in offered.items() if kind == "field"],
        "offered": offered,
        "chosen": chosen,
        "sortable": [*sortable, *widths(job)],
        "listed": listed_columns(offered, chosen),
        "view": view.model_copy(update={"columns": [] if usual else chosen or [NO_COLUMNS]}),
        "num_pages": max(1, -(-len(numbers) // ROWS_PER_PAGE)),
    }


def title_of(job: Job, row: int) -> str:
    """The id of a molecule, else its text in the first other column if no other row has it, else its row."""
    column, others = id_column_among(job.columns), [name for name in job.columns if name != job.smiles_column]
    name = "" if column == job.smiles_column else name_of(job.columns, job.rows[row].fields)
    if column is None and others:
        texts = [each.fields[job.columns.index(others[0])].strip() for each in job.rows]
        name = texts[row] if texts.count(texts[row]) == 1 and not is_number(texts[row]) else ""
    return as_text(shortened(name)) or f"Row {row + job.header + 1}"


@dataclass(frozen=True)
class Bar:
    """The bar of a target, its ``place`` and the ``ends`` of its interval from 0 to 100, None where it is not known."""

    target: str
    place: float | None = None
    ends: tuple[float, float] | None = None
    standing: str = ""  # the third of the drugs, from the better end; "" if no end is better
    among: Literal["drugs", "training values", ""] = ""  # these values; "" for a probability
    is_measured: bool = False  # whether the standing is that of the measured value


def grouped(facts: ModelFacts, targets: Iterable[str]) -> dict[str, list[str]]:
    """The targets by their group, in the order of the model; "" if no target of the model has one."""
    rest = OTHERS if any(endpoint.group for endpoint in facts.endpoints.values()) else ""
    groups: dict[str, list[str]] = {}
    for target in filter(set(targets).__contains__, facts.targets):
        groups.setdefault(facts.endpoint(target).group or rest, []).append(target)
    return groups


def grouped_bars(facts: ModelFacts, answer: MoleculePrediction) -> dict[str, list[Bar]]:
    groups = grouped(facts, answer.predictions)
    return {group: [bar_of(facts, answer, target) for target in targets] for group, targets in groups.items()}


def is_measured(facts: ModelFacts, answer: MoleculePrediction, target: str) -> bool:
    """Whether the nearest training molecule of a target is the same molecule."""
    near = answer.models.get(facts.compared_by.get(target, ""), {"in_training": answer.in_training})
    return bool(near["in_training"])


def warning_of(facts: ModelFacts, answer: MoleculePrediction, target: str) -> str:
    """The sentences on the domain that apply to a target: without names of targets, or with its own.

    Of a text such as "A, B and 2 others: ...", each target after B may be meant.
    """
    near = answer.models.get(facts.compared_by.get(target, ""), {"warning": answer.warning})
    told, place = [], facts.targets.index(target)
    for sentence in FAMILIAR.sub("", str(near["warning"] or "")).split(". "):
        names, _, text = sentence.strip().partition(": ")
        named = AND_OTHERS.sub("", names).split(", ")
        if not (text and set(named) <= set(facts.targets)):
            told.append(sentence)
        elif target in named or (AND_OTHERS.search(names) and place > facts.targets.index(named[-1])):
            told.append(text)
    return ". ".join(filter(None, map(str.strip, told)))


def bar_of(facts: ModelFacts, answer: MoleculePrediction, target: str) -> Bar:
    one, classes, measured = answer.predictions[target], facts.classes.get(target), None
    if one.drugs is None and (facts.is_probability or classes):
        return Bar(target, 100 * one.value)
    if one.drugs is None:
        low, high = one.percentile_low, one.percentile_high
        ends = None if low is None or high is None or low == high else (low, high)
        return Bar(target, one.percentile, ends, among="" if one.percentile is None else "training values")
    if one.nearest is not None and not one.nearest_bound and is_measured(facts, answer, target):
        measured = 100.0 * (one.nearest in (1, classes[1])) if classes else one.drugs_nearest  # a class is at an end
    ends = None if one.drugs_low is None or one.drugs_high is None else (one.drugs_low, one.drugs_high)
    place, direction = one.drugs if measured is None else measured, facts.endpoint(target).direction
    third = min(int((place if direction == "higher" else 100 - place) * 3 // 100), 2)
    is_judged = direction and not one.limit  # beyond a limit of the assay, drugs do not differ
    return Bar(target, one.drugs, ends, STANDINGS[third] if is_judged else "", "drugs", measured is not None)


def differ(answers: list[MoleculePrediction], target: str) -> bool:
    """Whether the intervals of some molecules do not overlap, or without intervals their classes differ."""
    ones = [answer.predictions[target] for answer in answers]
    lows, highs = [one.low for one in ones if one.low is not None], [one.high for one in ones if one.high is not None]
    return max(lows) > min(highs) if lows and highs else len({one.class_name for one in ones}) > 1


Pages = Callable[..., HTMLResponse]  # of the name of a template, a status, headers, and values by name


def make_pages(queue: JobQueue, root: str = "") -> Pages:
    """Jinja's templates, with ``root`` before each address; everything in them is escaped."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True)
    words = {"shown": shown, "score": score_words, "similarity": similarity_words, "limit_meaning": limit_meaning}
    own_words = {"number": as_shown, "unit": in_unit, "measured": as_measured, "sentence": as_sentence}
    environment.filters |= words | own_words | {"rounded": as_rounded, "data_uri": lambda svg: data_uri(svg.encode())}
    functions = {"zip": zip, "grouped_bars": grouped_bars, "is_measured": is_measured, "differ": differ}
    functions |= {"warning_of": warning_of}
    knows_excel = all(map(find_spec, ("openpyxl", "xlsxwriter")))
    read = [kind for kind in TABLE_KINDS if knows_excel or kind not in SPREADSHEET_KINDS]
    names = {"condition": api.CONDITION, "smi_columns": COLUMNS, "no_columns": NO_COLUMNS, "kinds": read}
    facts = {"limits": queue.limits, "version": __version__, "metrics": METRICS, "other_conditions": OTHER_CONDITIONS}
    environment.globals |= functions | names | facts | {"root": root, "knows_excel": knows_excel}

    def page(name: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any) -> HTMLResponse:
        facts, confidence = queue.facts, queue.facts.confidence
        of_models: dict[str, Any] = {"facts": facts}
        of_models["confidences"] = [] if confidence is None else sorted({confidence, *CONFIDENCES})
        of_models["descriptions"] = {target: known.description for target, known in facts.endpoints.items()}
        return HTMLResponse(environment.get_template(name).render(of_models | values), status, headers)

    return page


def as_shown(value: float, decimals: int | None) -> str:
    """A number with so many decimals; with four digits if that is not known."""
    return f"{value:.4g}" if decimals is None else shown(value, decimals)


def as_rounded(text: str) -> str:
    """A field of a table; a number with more decimals than anyone measures with seven significant digits."""
    return f"{float(text):.7g}" if LONG_NUMBER.fullmatch(text) else text


def in_unit(one: schemas.TargetPrediction, endpoint: EndpointFacts) -> tuple[str, str]:
    """A prediction of a logarithm in the unit of the measurements, and its interval; "" without one."""
    value, both = (as_measured(one.value, endpoint, *ends) for ends in ((), (one.low, one.high)))
    return value, both.removeprefix(value)[2:-1]


def as_measured(value: float, endpoint: EndpointFacts, *ends: float | None) -> str:
    return measured_words(value, endpoint.scale, endpoint.unit, *ends).removeprefix("= ")


def as_sentence(text: str) -> str:
    """A message with a capital, unless it begins with the name of a file, and a full stop."""
    begins_with_name = "." in text.split(" ", 1)[0]
    text = text if begins_with_name else text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."


def add_pages(app: FastAPI, queue: JobQueue, pages: Pages) -> None:
    app.add_api_route("/", lambda: pages("page.html"), include_in_schema=False)
    app.add_api_route("/docs", lambda: pages("docs.html"), include_in_schema=False)
    app.add_api_route("/about", lambda: pages("about.html"), include_in_schema=False)

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
        return led_to(request, job, View(columns=list(columns)))

    @app.post("/tables/{id}/again", include_in_schema=False)
    def again(request: Request, job: api.KnownJob, smiles_column: api.SmilesColumn) -> Response:
        return led_to(request, queue.predict_again(job, smiles_column), View())

    def led_to(request: Request, job: Job, view: View) -> Response:
        """The page of a table that was just given in, or for htmx the part that shows it."""
        address = view.address_of(job)
        if "hx-request" in request.headers:
            return pages("table.html", headers={"HX-Push-Url": address}, **shown_of(queue.facts, job, view))
        return RedirectResponse(address, 303)

    @app.get("/tables/{id}", include_in_schema=False)
    def show(job: api.KnownJob, view: AskedView) -> Response:
        return pages("page.html", **shown_of(queue.facts, job, view))

    @app.get("/tables/{id}/status", include_in_schema=False)
    def status(job: api.KnownJob, seen: Annotated[int, Query(ge=0)] = 0) -> Response:
        """How far the table is; an event for its rows where there are more than the page has ``seen``."""
        headers = ROWS_CHANGED if job.is_over or len(job.answers) > seen else None
        return pages("status.html", headers=headers, **progress_of(job))

    @app.post("/tables/{id}/cancel", include_in_schema=False)
    def cancel(request: Request, job: api.KnownJob) -> Response:
        queue.cancel(job)
        if "hx-request" in request.headers:
            return pages("status.html", headers=ROWS_CHANGED, **progress_of(job))
        return RedirectResponse(f"/tables/{job.number}", 303)

    @app.get("/tables/{id}/rows", include_in_schema=False)
    def rows(request: Request, job: api.KnownJob, view: AskedView) -> Response:
        """The rows of a view, which becomes a step of the browser's history unless they only arrive."""
        current = shown_of(queue.facts, job, view)
        source = request.headers.get("hx-source", "")
        headers = None if source == "div#rows" else {"HX-Push-Url": current["view"].address_of(job)}
        return pages("rows.html", headers=headers, is_choosing=source.startswith(("form#", "a#")), **current)

    @app.get("/tables/{id}/rows/{row}", include_in_schema=False)
    def molecule(job: api.KnownJob, row: int, view: AskedView) -> Response:
        """All that is known of one molecule, with the way back to the view that it was opened from."""
        (answer,), order = api.answered_rows(job, [row]), shown_rows(job, view)
        place = order.index(row) if row in order else None
        near = [] if place is None else [("Previous", order[:place][-1:]), ("Next", order[place + 1 : place + 2])]
        content = {"row": answer, "near": near, "title": title_of(job, row)}
        return pages("molecule.html", **shown_of(queue.facts, job, view) | content)

    @app.get("/tables/{id}/rows/{row}/atoms", include_in_schema=False)
    def atoms(request: Request, job: api.KnownJob, row: int, explained: api.Explained) -> Response:
        name = "atoms.html" if "hx-request" in request.headers else "atoms_page.html"
        smiles, title, (target, explanation) = as_text(job.rows[row].smiles), title_of(job, row), explained
        return pages(name, atoms=explanation, id=job.number, row=row, target=target, smiles=smiles, title=title)

    @app.get("/tables/{id}/compare", include_in_schema=False)
    def compare(job: api.KnownJob, row: Annotated[tuple[int, ...], Query()] = ()) -> Response:
        numbers = sorted(set(row))
        if len(numbers) not in MOLECULES_COMPARED:
            raise InputError("choose two or three molecules to compare, by their boxes in the table")
        rows = api.answered_rows(job, numbers)
        molecules = [(title_of(job, row.row), row, grouped_bars(queue.facts, row)) for row in rows]
        return pages("compare.html", **shown_of(queue.facts, job), compared=molecules)
