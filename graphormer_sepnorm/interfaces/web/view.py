"""The rows and columns of a table that the page shows, in their order, and the predictions of a molecule as bars."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from graphormer_sepnorm.errors import as_text
from graphormer_sepnorm.interfaces.web.api import field_names, rows_of, status_of
from graphormer_sepnorm.interfaces.web.jobs import Job, cell_at
from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, MoleculePrediction, TargetPrediction
from graphormer_sepnorm.tables.label_text import shortened
from graphormer_sepnorm.tables.rows import id_column_among, name_of

ROWS_PER_PAGE = 50
NOTHING = (None, "")
NO_COLUMNS = "no columns"  # among the columns of a view: none is shown, not the usual ones, if there is no other
MOST_FIELDS = 50
NEAREST, ALERTS = "Nearest training molecule", "Alerts"
ColumnKind = Literal["class", "target", "nearest", "alerts", "smiles", "property", "field"]
USUAL = "class", "target", "nearest", "alerts"
WIDTH = "interval width of "
OTHERS = "Other endpoints"  # those without a group
# Rows that can be asked for, by the name of the choice.
KEPT: dict[str, Callable[[MoleculePrediction], bool]] = {
    "all": lambda answer: True,
    "predicted": lambda answer: not answer.error,
    "warned": lambda answer: bool(answer.warning),
    "unreadable": lambda answer: bool(answer.error),
}


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


FIRST_VIEW = View()


def offered_columns(facts: ModelFacts, job: Job) -> dict[str, ColumnKind]:
    """The columns that can be shown, by name: the usual ones first, and at most ``MOST_FIELDS`` of the upload."""
    predicted = {column.place[1] for column in job.added if column.place[0] == "predictions"}
    properties = [column.name for column in job.added if column.place[0] == "properties"]
    fields = [name for name, column in zip(field_names(job), job.columns, strict=True) if column != job.smiles_column]
    names: dict[ColumnKind, list[str]] = {
        "class": ["Class"] if facts.class_names else [],
        "target": [target for target in facts.targets if target in predicted],
        "nearest": [NEAREST] if job.options.domain else [],
        "alerts": [ALERTS] if job.options.alerts else [],
        "smiles": ["SMILES"],
        "property": properties,
        "field": fields[:MOST_FIELDS],
    }
    found: dict[str, ColumnKind] = {}
    for kind, each in names.items():
        found |= {name: kind for name in each if name not in found}
    return found


def chosen_columns(offered: dict[str, ColumnKind], view: View) -> list[str]:
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
        if KEPT[view.only](answer)
        and (not text or any(text in as_text(field).lower() for field in job.rows[number].fields))
    ]
    cell_of = sorting_cell(job, view.sort)
    if cell_of is None:
        return rows
    cells: dict[int, Any] = {row: cell_of(answers[row]) for row in rows}
    known = [row for row in rows if cells[row] not in NOTHING]
    rest = [row for row in rows if cells[row] in NOTHING]
    return sorted(known, key=cells.__getitem__, reverse=view.order == "descending") + rest


def sorting_cell(job: Job, sort: str) -> Callable[[MoleculePrediction], Any] | None:
    """The function to what rows are sorted by; None if nothing is called so."""
    if sort in width_names(job):
        return partial(width, target=sort.removeprefix(WIDTH))
    place = next((column.place for column in job.added if column.name == sort), None)
    return None if place is None else partial(cell_at, place=place)


def width_names(job: Job) -> list[str]:
    """The widths of intervals that rows can be sorted by, one for each target that has them."""
    return [f"{WIDTH}{column.place[1]}" for column in job.added if column.place[-1] == "low"]


def width(answer: MoleculePrediction, target: str) -> float | None:
    one = answer.predictions.get(target)
    return None if one is None or one.low is None or one.high is None else one.high - one.low


def progress_of(job: Job) -> dict:
    return {"progress": status_of(job), "is_over": job.is_over, "options": job.options}


def shown_of(facts: ModelFacts, job: Job, view: View = FIRST_VIEW) -> dict:
    progress = progress_of(job)  # before the rows, so that none is missed that comes meanwhile
    numbers = shown_rows(job, view)
    start = (view.page - 1) * ROWS_PER_PAGE
    offered = offered_columns(facts, job)
    chosen = chosen_columns(offered, view)
    usual = chosen == chosen_columns(offered, FIRST_VIEW)
    sorted_by = ("value", "class_name", "similarity")
    sortable = [each.name for each in job.added if each.place[-1] in sorted_by or each.name == view.sort]
    return progress | {
        "rows": rows_of(job, numbers[start : start + ROWS_PER_PAGE]),
        "num_rows": len(numbers),
        "fields": [name for name, kind in offered.items() if kind == "field"],
        "offered": offered,
        "chosen": chosen,
        "orders": [moved(chosen, place) for place in range(len(chosen))],
        "sortable": [*sortable, *width_names(job)],
        "listed": listed_columns(offered, chosen),
        "view": view.model_copy(update={"columns": [] if usual else chosen or [NO_COLUMNS]}),
        "num_pages": max(1, -(-len(numbers) // ROWS_PER_PAGE)),
    }


def title_of(job: Job, row: int) -> str:
    column = id_column_among(job.columns)
    name = "" if column == job.smiles_column else name_of(job.columns, job.rows[row].fields)
    return as_text(shortened(name)) or f"Row {row + 1}"


def moved(names: list[str], place: int) -> tuple[list[str], list[str]]:
    """The names with the one at a place moved to the left, and to the right, as far as it can be."""
    rest, name = names[:place] + names[place + 1 :], names[place]
    left, right = max(place - 1, 0), place + 1
    return [*rest[:left], name, *rest[left:]], [*rest[:right], name, *rest[right:]]


@dataclass(frozen=True)
class Bar:
    """The bar of a target, its ``place`` and the ``ends`` of its interval from 0 to 100, None where it is not known.

    The ``standing`` is the third that the place is in, from the better end, "" if no end is better; a percentile is
    ``among`` these values, a probability among none.
    """

    target: str
    place: float | None = None
    ends: tuple[float, float] | None = None
    standing: Literal["better", "middle", "worse", ""] = ""
    among: Literal["drugs", "training values", ""] = ""


def grouped_bars(facts: ModelFacts, answer: MoleculePrediction) -> dict[str, list[Bar]]:
    """The bars of a molecule by the group of their targets, in the order of the targets; "" if none has a group."""
    rest = OTHERS if any(known.group for known in facts.endpoints.values()) else ""
    found: dict[str, list[Bar]] = {}
    for target in filter(answer.predictions.__contains__, facts.targets):
        known = facts.endpoints.get(target, EndpointFacts())
        found.setdefault(known.group or rest, []).append(bar_of(facts, answer.predictions[target], target, known))
    return found


def bar_of(facts: ModelFacts, one: TargetPrediction, target: str, known: EndpointFacts) -> Bar:
    if facts.is_probability or target in facts.classes:
        return Bar(target, 100 * one.value, None, standing_of(100 * one.value, known.direction))
    if one.drugs is None:
        low, high = one.percentile_low, one.percentile_high
        ends = None if low is None or high is None or low == high else (low, high)
        return Bar(target, one.percentile, ends, among="" if one.percentile is None else "training values")
    ends = None if one.drugs_low is None or one.drugs_high is None else (one.drugs_low, one.drugs_high)
    direction = "" if one.limit else known.direction  # beyond a limit of the assay, drugs do not differ
    return Bar(target, one.drugs, ends, standing_of(one.drugs, direction), "drugs")


def standing_of(place: float, direction: str) -> Literal["better", "middle", "worse", ""]:
    good = place if direction == "higher" else 100 - place
    return "" if not direction else "worse" if good < 100 / 3 else "middle" if good < 200 / 3 else "better"
