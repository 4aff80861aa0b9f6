"""Which rows of a table the page shows, and in which order."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from graphormer_sepnorm.errors import as_text
from graphormer_sepnorm.interfaces.web.exchange import field_names
from graphormer_sepnorm.interfaces.web.jobs import Job, cell_at
from graphormer_sepnorm.interfaces.web.schemas import ModelFacts, MoleculePrediction

ROWS_PER_PAGE = 50
NOTHING = (None, "")
NO_COLUMNS = "no columns"  # among the columns of a view: none is shown, not the usual ones, if there is no other
MOST_FIELDS = 50
NEAREST, ALERTS = "Nearest training molecule", "Alerts"
ColumnKind = Literal["class", "target", "nearest", "alerts", "smiles", "property", "field"]
USUAL = "class", "target", "nearest", "alerts"
WIDTH = "interval width of "
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
    """The names of the columns that a view shows, in its order."""
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
    """The numbers of the rows on all pages of a view, in its order."""
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
