"""Work of a Dask worker: reads one partition of a library and writes one Parquet part, in bounded memory."""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import STRICT
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.output.resumable_writer import refuse_errors
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.answers import NO_ANSWERS, Answers
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions, read_and_compute
from graphormer_sepnorm.project.profile import Profile
from graphormer_sepnorm.system.device import Compute
from graphormer_sepnorm.system.files import replacing
from graphormer_sepnorm.system.workers import CHUNK, Smiles, in_chunks
from graphormer_sepnorm.tables import formats
from graphormer_sepnorm.tables.formats.cells import PARQUET, batches_of, open_parquet
from graphormer_sepnorm.tables.formats.table import Row, cell_text, find_column, free_name, not_one_column
from graphormer_sepnorm.tables.rows import AskedConditions, samples_of
from graphormer_sepnorm.tables.writers.base import as_utf8
from graphormer_sepnorm.tables.writers.parquet import arrow_array, arrow_fields

GROUP = 65_536
FOOTER = b"graphormer_sepnorm"
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, config=STRICT)
class Selection:
    """The rows of a library to keep."""

    by: str  # the column of predictions that rows are compared by
    keep_top: Annotated[int, Field(ge=1)] | None = None
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None  # the least value; if lowest, the largest
    lowest: bool = False

    @property
    def keeps_all(self) -> bool:
        return self.keep_top is None and self.threshold is None


@dataclass(frozen=True, config=STRICT)
class PartOptions:
    """The options of every partition."""

    selection: Selection
    columns: tuple[str, ...] | None = None  # of the input, to keep; None: all
    smiles_column: str | None = None
    delimiter: str | None = None
    strict: bool = False  # an unreadable row makes its whole partition fail
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    answers: Answers = NO_ANSWERS
    acquisition: Acquisition | None = None
    profile: Profile | None = None

    def of_predictions(self, predictor: PredictingModel) -> PredictionColumns:
        return PredictionColumns(predictor, self.answers, self.acquisition, profile=self.profile)


@dataclass(frozen=True, config=STRICT)
class Assignment:
    """A partition and the part to write."""

    source: str
    part: str
    job: str  # digest of models, version and options
    content: str  # digest of ``source``; "" if it cannot be read


@dataclass(frozen=True, config=STRICT)
class Report:
    """The content of the footer of a part."""

    job: str
    content: str
    rows: Count
    unreadable: Count
    kept: Count  # rows of the part
    compared: str  # column that rows are compared by
    seconds: float
    cpu_seconds: float  # of the whole process
    memory_mib: float  # the most of the process at the end of a batch


def read_report(part: Path) -> Report | None:
    """The report in the footer of a part; None if the part is missing or incomplete."""
    try:
        footer = (pq.read_metadata(part).metadata or {}).get(FOOTER, b"")
        return TypeAdapter(Report).validate_json(footer)
    except (OSError, ValueError):
        return None


class Batch(NamedTuple):
    """Some rows of a partition: the columns to keep, their molecules, and why each cannot be used, or ""."""

    columns: pa.Table
    molecules: Smiles
    errors: list[str]


@contextlib.contextmanager
def open_partition(
    path: str, options: PartOptions, asked: AskedConditions
) -> Iterator[tuple[pa.Schema, Iterator[Batch]]]:
    """The columns to keep and lazily read rows of Parquet, which keeps its types, or of another table, as text."""
    if formats.kind_of(path) == PARQUET:
        with open_parquet(path) as file:
            types = file.schema_arrow.remove_metadata()
            smiles = types.names[find_column(types.names, options.smiles_column, path)]
            if not is_text(types.field(smiles).type):
                raise InputError(f"the column {smiles!r} of {path} is {types.field(smiles).type}, not text")
            kept = kept_columns(types.names, options.columns, path)
            asked.places(types.names, path)
            used = [smiles, *asked.columns]
            read = samples_of(used, asked, path)

            def batch_of(batch: pa.RecordBatch) -> Batch:
                fields = zip(*(map(cell_text, batch.column(name).to_pylist()) for name in used), strict=True)
                rows = [Row(list(texts), texts[0]) for texts in fields]
                own = pa.Table.from_batches([batch]).select(kept).replace_schema_metadata(None)
                return Batch(own, read(rows), [""] * len(rows))

            found = batches_of(file, path, CHUNK, list(dict.fromkeys([*used, *kept])))
            yield pa.schema([types.field(name) for name in kept]), map(batch_of, found)
    else:
        source = (path, formats.named_column(path, options.smiles_column), options.delimiter)
        with formats.open_table(*source) as table:
            kept = kept_columns(table.columns, options.columns, path)
            schema = pa.schema([(as_utf8(name), pa.string()) for name in kept])
            places = [table.columns.index(name) for name in kept]
            read = samples_of(table.columns, asked, path, table.delimiter, partial(formats.rows_of, *source))

            def batch_of_text(rows: list[Row]) -> Batch:
                texts = [pa.array([as_utf8(row.fields[place]) for row in rows], pa.string()) for place in places]
                return Batch(pa.Table.from_arrays(texts, schema=schema), read(rows), [row.error for row in rows])

            yield schema, map(batch_of_text, in_chunks(table.rows))


def is_text(kind: pa.DataType) -> bool:
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return own in (pa.string(), pa.large_string(), pa.string_view())


def kept_columns(names: list[str], wanted: tuple[str, ...] | None, path: str) -> list[str]:
    """The columns to keep, by default all; raises InputError unless each name exists exactly once."""
    kept = list(names if wanted is None else dict.fromkeys(wanted))
    for name in kept:
        if (count := names.count(name)) != 1:
            raise InputError(not_one_column(path, names, name, count, "name those to keep with --columns"))
    return kept


def write_part(predictor: PredictingModel, compute: Compute, options: PartOptions, assignment: Assignment) -> Report:
    """Computes the predictions of a partition."""
    started, cpu_started = time.monotonic(), time.process_time()
    rows = unreadable = memory = kept = 0
    columns = options.of_predictions(predictor)
    opened = open_partition(assignment.source, options, predictor.asked_conditions)
    with opened as (schema, batches), replacing(Path(assignment.part)) as file:
        layout = PartColumns(columns, schema, options.selection)

        def scored() -> Iterator[pa.Table]:
            nonlocal rows, unreadable, memory
            for batch in batches:
                predictions = read_and_compute(columns.reader, compute, batch.molecules)
                errors = [known or found for known, found in zip(batch.errors, predictions.errors, strict=True)]
                if options.strict:
                    refuse_errors(errors, rows)
                yield layout.table(batch.columns, predictions, errors, rows)
                rows, unreadable = rows + len(errors), unreadable + sum(map(bool, errors))
                memory = max(memory, psutil.Process().memory_info().rss)

        with pq.ParquetWriter(file, layout.schema, compression="zstd", write_page_checksum=True) as writer:
            for table in layout.selected(scored()):
                kept += len(table)
                writer.write_table(table)
            counts = (rows, unreadable, kept, layout.compared)
            seconds = (round(time.monotonic() - started, 3), round(time.process_time() - cpu_started, 3))
            report = Report(assignment.job, assignment.content, *counts, *seconds, round(memory / 2**20, 1))
            writer.add_key_value_metadata({FOOTER: json.dumps(asdict(report))})
    return report


class PartColumns:
    """Columns of the input and of predictions; then ``error``, or, of a selection, ``row``, its number from 0."""

    def __init__(self, columns: PredictionColumns, kept: pa.Schema, selection: Selection):
        self.selection = selection
        self.columns = columns
        *fields, last = arrow_fields(columns.columns(), kept.names)
        self.compared = fields[[column.name for column in columns.all].index(selection.by)].name
        if not selection.keeps_all:
            taken = [*kept.names, *(field.name for field in fields)]
            last = pa.field(free_name("row", taken, "_predicted"), pa.int64())
        self.schema = pa.schema([*kept, *fields, last])

    def table(self, kept: pa.Table, predictions: Predictions, errors: list[str], first: int) -> pa.Table:
        """One row for each row of a batch; ``first`` is the number of the first one."""
        cells = self.columns.cells(predictions, errors)
        *added, last = map(arrow_array, cells, self.schema.types[-len(cells) :])
        if not self.selection.keeps_all:
            last = pa.array(np.arange(first, first + len(errors)))
        return pa.Table.from_arrays([*kept.columns, *added, last], schema=self.schema)

    def selected(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The rows to keep, in groups; if their number is limited, the best ones first."""
        threshold, lowest = self.selection.threshold, self.selection.lowest
        if threshold is not None:
            found = ((table, table[self.compared].to_numpy()) for table in tables)
            tables = (each.filter(values <= threshold if lowest else values >= threshold) for each, values in found)
        if self.selection.keep_top is None:
            yield from in_groups(tables, GROUP)
        else:
            yield best_rows(tables, self.compared, self.selection.keep_top, lowest, self.schema)


def in_groups(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The rows of the tables, joined into tables of at least ``rows`` rows; the last one may be smaller."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def best_rows(tables: Iterable[pa.Table], column: str, count: int, lowest: bool, schema: pa.Schema) -> pa.Table:
    """The best rows, best first, ties in input order; those without a value are left out."""
    best = schema.empty_table()
    for group in in_groups(tables, max(count, GROUP)):
        candidates = pa.concat_tables([best, group])
        values = candidates[column].to_numpy()
        order = np.argsort(values if lowest else -values, kind="stable")[:count]
        best = candidates.take(order[~np.isnan(values[order])])
    return best
