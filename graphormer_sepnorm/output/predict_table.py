"""Predictions for whole tables into a file, row for row."""

import contextlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import chain, compress, takewhile, zip_longest
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import AS_FOUND, NO_ANSWERS, Answers, ReadOptions
from graphormer_sepnorm.output.column import PredictedColumn, shown_decimals, two_classes
from graphormer_sepnorm.output.columns import Judging, PredictionColumns
from graphormer_sepnorm.output.resumable_writer import write_table
from graphormer_sepnorm.predict.describing import measured_words, shown_unit
from graphormer_sepnorm.predict.domain import MISSING_CONDITION, OTHER_CONDITIONS, is_in_training, missing_conditions
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions
from graphormer_sepnorm.predict.side_by_side import SideBySide, parts_of
from graphormer_sepnorm.runs.info import groups_of
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.runs.zoo import shipped_models, shipped_tables
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables.formats import is_table_name
from graphormer_sepnorm.tables.formats.table import Row, Table
from graphormer_sepnorm.tables.formats.text import STANDARD_INPUT
from graphormer_sepnorm.tables.rows import id_column_among
from graphormer_sepnorm.tables.writers import WRITERS
from graphormer_sepnorm.tables.writers.base import AddedColumn, Cells, TableWriter
from graphormer_sepnorm.tables.writers.excel import ExcelWriter, Pairs
from graphormer_sepnorm.tasks import TASKS

# Warnings that say nothing about the domain.
IGNORED = r"Read as \S+( \|.*?\|)?: the text after it was ignored\."
FAMILIAR = re.compile("|".join([re.escape(OTHER_CONDITIONS), MISSING_CONDITION.pattern, IGNORED]))
CONDITION = re.compile(r"[^\W\d]\w+=[^=]+$")  # NAME=VALUE; most SMILES with such a beginning are readable
SHORT = {"class_name": "class", "nearest_bound": "nearest"}  # as in the names of columns
DISTANCE_DECIMALS = 2
REMARKS = ("unfamiliar", "below_zero", "missing_conditions")
MEASURED = (("nearest",), ("nearest_bound",))  # last parts of the places of labels of the nearest molecule
PERCENTILES = ("percentile", "percentile_low", "percentile_high")


def predict_table(
    predictor: PredictingModel,
    source: str | Sequence[str],
    out: Path,
    reading: ReadOptions = AS_FOUND,
    answers: Answers = NO_ANSWERS,
    meanings: Mapping[str, dict] | None = None,
    profile: Judging | None = None,
    watch: Callable[[Smiles, Predictions], None] | None = None,
    about: Pairs = (),
) -> dict:
    """Writes the predictions for each row of a table, as ``write_table``; with ``meanings``, as lines for people.

    A workbook says what its models are, by the pairs of texts ``about`` them.
    """
    columns = CountedColumns(predictor, answers, profile=profile, is_whole=profile is not None)
    if meanings is not None and isinstance(predictor, SideBySide):
        meanings = predictor.endpoints
    options = (str(answers.interval), predictor.digest, *([repr(profile)] if profile else []))
    writers = WRITERS | {".xlsx": partial(ExcelWriter, about=[*about, *columns.about])}
    writers = writers if meanings is None else {".csv": partial(TextWriter, predicted=columns, meanings=meanings)}
    written = (source, out, reading, options, writers, columns.is_whole, watch, columns.remarks)
    result = write_table(columns.reader, columns.all, columns.cells, *written)
    unfamiliar = result["unfamiliar"].get("rows", 0) if any(model.trust for model in parts_of(predictor)) else None
    return {**result, **{name: dict(result[name]) for name in REMARKS}, "unfamiliar": unfamiliar}


@dataclass(frozen=True)
class CountedColumns(PredictionColumns):
    """The columns of predictions, with counts of rows that deserve a remark."""

    # "unfamiliar": "rows" with a warning; "below_zero": values by column whose training labels are above 0;
    # "missing_conditions": rows by the sentence on a condition
    remarks: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in REMARKS})

    def cells(self, predictions: Predictions, errors: list[str]) -> list[Cells]:
        self.remarks["missing_conditions"].update(missing_conditions(predictions.warnings, errors))
        warnings = zip(*(each.warnings for each in predictions.parts or [predictions]), strict=True)
        pairs = zip(warnings, errors, strict=True)
        self.remarks["unfamiliar"]["rows"] += sum(
            not error and any(FAMILIAR.sub("", text).strip() for text in texts) for texts, error in pairs
        )
        cells = super().cells(predictions, errors)
        for column, each in zip(self.all, cells, strict=True):
            if len(column.place) == 3 and column.place[1] in self.positive and column.place[2] in ("value", "low"):
                self.remarks["below_zero"][column.name] += int((np.asarray(each) < 0).sum())
        return cells

    @cached_property
    def positive(self) -> set[str]:
        """The targets of a regression, other than logarithms, whose training labels are all above 0."""
        trusts = [(part, part.model.trust) for part in self.parts if not part.of_classes]
        known = [(part, trust.rows.positive) for part, trust in trusts if trust and trust.rows]
        targets = (zip_longest(part.labels, own, part.model.scales) for part, own in known)
        return {label for label, own, scale in chain.from_iterable(targets) if own and not scale}


class TextWriter(TableWriter):
    """Lines for people: a molecule, a line per target with its interval, and a line for each other column and limit."""

    def __init__(
        self,
        columns: list[str],
        added: Sequence[AddedColumn],
        like: Table | None,
        predicted: PredictionColumns,
        meanings: Mapping[str, dict],
    ):
        self.columns = predicted.all
        self.id_place = columns.index(id_column) if (id_column := id_column_among(columns)) else None
        kinds = [(TASKS[part.model.kind], target) for part in predicted.parts for target in part.labels]
        self.of_classes = {target for task, target in kinds if task.predicts_probabilities}
        self.adding_up = {target for task, target in kinds if task.adds_up}
        self.units = {name: f" (probability of {one})" for name, (_, one) in two_classes(predicted.model).items()}
        self.meanings = {target: facts["description"] for target, facts in meanings.items()}
        self.groups = groups_of(meanings)
        self.decimals = shown_decimals(predicted.model)
        self.scales = dict(zip(predicted.model.targets, predicted.model.scales, strict=False))

    def header(self) -> bytes:
        return b""

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        cells = {column.place: each for column, each in zip(self.columns, added, strict=True)}
        columns = (
            self.in_units(column.place[1], cells) if column.place[-1] == "unlogged" else self.texts(column, each)
            for column, each in zip(self.columns, added, strict=True)
        )
        lines: list[str] = []
        for number, (row, texts) in enumerate(zip(rows, zip(*columns, strict=True), strict=True)):
            name = "" if self.id_place is None else row.fields[self.id_place]
            lines += [f"{name}  {row.smiles}".strip(), *self.lines(texts), *self.remarks(number, cells)]
        return "".join(f"{line}\n" for line in lines).encode()

    def remarks(self, number: int, cells: Mapping[tuple[str, ...], Cells]) -> Iterator[str]:
        """Lines on a molecule of the training table and on predictions near a limit, from ``cells`` at their places."""
        for *outer, last in cells:
            if last == "nearest" and outer[:1] != ["predictions"]:
                near = (np.asarray(cells[(*outer, name)])[number] for name in ("similarity", "nearest", "warning"))
                if is_in_training(*near):
                    of_model = f" of {outer[1]}" if outer else ""
                    measured = [texts[number] for place, texts in cells.items() if place[2:] in MEASURED]
                    said = ": nearest is what was measured for this molecule"
                    if measured and all(text in ("", None) or text != text for text in measured):
                        said = ", but not measured for these endpoints"
                    yield f"  in the training table{of_model}{said}"
        for place, texts in cells.items():
            if place[2:] == ("limit",) and texts[number]:
                yield f"  {place[1]} is {texts[number]}"

    def in_units(self, target: str, cells: Mapping[tuple[str, ...], Cells]) -> list[str]:
        """The predictions of a target in the unit of the measurements, from the ``cells`` at their places."""
        scale = self.scales[target]
        unit = shown_unit(scale, self.meanings.get(target, ""))
        parts = [cells.get(("predictions", target, part)) for part in ("value", "low", "high")]
        converted = zip(*(part for part in parts if part is not None), strict=True)
        return ["" if value != value else measured_words(value, scale, unit, *ends) for value, *ends in converted]

    def texts(self, column: PredictedColumn, cells: Cells) -> list[str]:
        """The cells of a column; probabilities and numbers on the scale of the labels have ``shown_decimals``."""
        target, part = column.place[1] if column.place[0] == "predictions" else "", column.place[-1]
        is_whole = part in (*PERCENTILES, "drugs", "class_name") or (part == "nearest" and target in self.of_classes)
        decimals = 0 if is_whole else DISTANCE_DECIMALS if part == "cls_distance" else self.decimals.get(target)
        numbers, end = cells.tolist() if isinstance(cells, np.ndarray) else cells, " %" * (part == "drugs")
        if column.place[0] == "properties":
            return ["" if cell != cell else f"{cell:.4g}" for cell in numbers]
        words = (cell if isinstance(cell, str) else "" if cell != cell else shown(cell, decimals) for cell in numbers)
        return [text and f"{text}{end}" for text in words]

    def lines(self, texts: Sequence[str]) -> Iterator[str]:
        by_place = {column.place: text for column, text in zip(self.columns, texts, strict=True) if text}
        heads = {
            place: place[1]
            if place[0] in ("predictions", "conditions", "properties")
            else " ".join([*place[1:-1], SHORT.get(place[-1], place[-1])])  # after the name of its model, if it has one
            for place in by_place
            if place[2:] in ((), ("value",)) or place[0] == "models"
        }
        width = max(map(len, heads.values()), default=0)
        for part in ("value", "low", "high"):
            places = [place for place in by_place if place[2:] == (part,)]
            by_place |= zip(places, aligned([by_place[place] for place in places]), strict=True)
        rows = []
        for place, head in heads.items():
            is_target = place[0] == "predictions"
            parts = {at[2]: text for at, text in by_place.items() if at[:2] == place[:2]} if is_target else {}
            ends = f"({parts['low']} to {parts['high']})" if "low" in parts else ""
            if parts.get("percentile_low") != parts.get("percentile_high"):
                parts["percentile"] = f"{parts['percentile_low']} to {parts['percentile_high']}"
            said = {"value", "unlogged_low", "unlogged_high", "limit", *PERCENTILES[1:]}
            said |= {"low", "high", "std"} if ends else set()
            said |= {"nearest"} if is_target and place[1] in self.adding_up else set()
            parts = {part: text for part, text in parts.items() if part not in said}
            words = [text if part == "unlogged" else f"{SHORT.get(part, part)} {text}" for part, text in parts.items()]
            unit, meaning = (self.units.get(head, ""), self.meanings.get(head, "")) if is_target else ("", "")
            rows.append((f"  {head:{width}}", by_place[place] + unit, ends, ", ".join(words), meaning))
        are_targets = [place[2:] == ("value",) for place in heads]
        widths = [max(map(len, column)) for column in zip(*compress(rows, are_targets), strict=True)]
        group = ""
        for row, is_target, head in zip(rows, are_targets, heads.values(), strict=True):
            if is_target and group != (group := self.groups.get(head, "")):
                yield f" {group}".rstrip()
            cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) if is_target else row
            yield "  ".join(filter(None, cells)).rstrip()


def aligned(numbers: Sequence[str]) -> list[str]:
    """Numbers with blanks around them, so that their decimal points stand below each other."""
    parts = [number.partition(".") for number in numbers]
    before = max((len(whole) for whole, _, _ in parts), default=0)
    after = max((len(point + rest) for _, point, rest in parts), default=0)
    return [f"{whole:>{before}}{point + rest:{after}}" for whole, point, rest in parts]


def models_and_source(arguments: Sequence[str]) -> tuple[list[str], str | list[str]]:
    """Names of models, and the table or the SMILES that follow them."""
    *models, last = arguments
    is_table = last == STANDARD_INPUT or os.path.exists(last) or is_table_name(last)
    shipped = shipped_models() | shipped_tables()
    are_smiles = takewhile(lambda text: text not in shipped and not os.path.exists(text), reversed(arguments[1:]))
    smiles = [] if is_table else list(are_smiles)[::-1]
    if not models or not (is_table or smiles):
        raise InputError(
            "name a model and then an input: graphormer-sepnorm predict MODEL INPUT -o OUT.csv, or predict MODEL SMILES"
        )
    if is_table:
        return models, last
    for text in smiles:
        try:
            read_smiles(text)
        except InputError as error:
            why = f"{text} is neither a file nor readable as SMILES: {error}"
            if CONDITION.match(text):
                why = f"{text} is not readable as SMILES; if it is a condition, write --condition {shlex.quote(text)}"
            elif near := similar_file(text):
                why = f"there is no file {text}; did you mean {near}?"
            raise InputError(why) from None
    return list(arguments[: -len(smiles)]), smiles


def similar_file(name: str) -> str | None:
    """The file in the same folder that a name of no file is most like, if this has an ending and names a table."""
    path = Path(name)
    with contextlib.suppress(OSError):
        tables = [each.name for each in path.parent.iterdir() if is_table_name(each)]
        for near in get_close_matches(path.name, tables, n=1) if path.suffix else ():
            return str(path.with_name(near))
    return None
