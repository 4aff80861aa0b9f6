"""Partitions of a library on Dask workers: each is read and written as a Parquet part, in bounded memory."""

import contextlib
import dataclasses
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import dask
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster, WorkerPlugin, as_completed, get_worker
from distributed.utils import silence_logging_cmgr
from distributed.worker import Worker
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from graphormer_sepnorm.config import STRICT
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import NO_ANSWERS, Answers
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.output.resumable_writer import refuse_errors
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.predictors import PredictingModel, read_and_compute
from graphormer_sepnorm.project.profile import Profile
from graphormer_sepnorm.system.device import Compute, choose
from graphormer_sepnorm.system.files import replacing
from graphormer_sepnorm.system.workers import CHUNK, Smiles, available_cores, in_chunks
from graphormer_sepnorm.tables import formats
from graphormer_sepnorm.tables.formats.cells import PARQUET, batches_of, open_parquet
from graphormer_sepnorm.tables.formats.table import Row, cell_text, find_column, free_name, not_one_column
from graphormer_sepnorm.tables.rows import AskedConditions, samples_of
from graphormer_sepnorm.tables.writers.base import as_utf8
from graphormer_sepnorm.tables.writers.parquet import arrow_array, arrow_fields
from graphormer_sepnorm.version import __version__

GROUP = 65_536
FOOTER = b"graphormer_sepnorm"
SECONDS_TO_CONNECT = 20
DASK_GROUP = "partition"  # Dask queues tasks for free workers only if many belong to the same group
LOCAL = {
    # Workers get one partition at a time, so that a partition that kills workers is identified.
    "distributed.scheduler.worker-saturation": 1.0,
    # With Dask's default, the memory of every large tensor would be returned and requested again: half as fast.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
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
    with_samples: bool = False  # add a last column of what the model reads: as JSON, SMILES and conditions

    def of_predictions(self, predictor: PredictingModel) -> PredictionColumns:
        return PredictionColumns(predictor, self.answers, self.acquisition, profile=self.profile)


@dataclass(frozen=True, config=STRICT)
class Assignment:
    """A partition and the part to write."""

    source: str
    part: str
    job: str  # digest of models, version and options
    content: str  # digest of ``source``; "" if it cannot be read
    name: str = ""  # of the partition in the library


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
    with contextlib.suppress(OSError, ValueError):
        return TypeAdapter(Report).validate_json((pq.read_metadata(part).metadata or {}).get(FOOTER, b""))
    return None


@contextlib.contextmanager
def open_partition(
    path: str, options: PartOptions, conditions: AskedConditions
) -> Iterator[tuple[pa.Schema, Iterator[tuple[pa.Table, list[Row]]], Callable[[list[Row]], Smiles]]]:
    """The columns to keep, some rows at a time with these columns, and how their molecules are read.

    Parquet keeps its types; another table is text.
    """
    if formats.kind_of(path) == PARQUET:
        with open_parquet(path) as file:
            types = file.schema_arrow.remove_metadata()
            smiles = types.names[find_column(types.names, options.smiles_column, path)]
            kind = types.field(smiles).type
            texts = kind.value_type if pa.types.is_dictionary(kind) else kind
            if texts not in (pa.string(), pa.large_string(), pa.string_view()):
                raise InputError(f"the column {smiles!r} of {path} is {kind}, not text")
            kept = kept_columns(types.names, options.columns, path)
            conditions.places(types.names, path)
            used = [smiles, *conditions.columns]

            def typed(batch: pa.RecordBatch) -> tuple[pa.Table, list[Row]]:
                fields = zip(*(map(cell_text, batch.column(name).to_pylist()) for name in used), strict=True)
                own = pa.Table.from_batches([batch]).select(kept).replace_schema_metadata(None)
                return own, [Row(list(texts), texts[0]) for texts in fields]

            batches, schema = batches_of(file, path, CHUNK, list({*used, *kept})), map(types.field, kept)
            yield pa.schema(schema), map(typed, batches), samples_of(used, conditions, path)
        return
    source = (path, formats.named_column(path, options.smiles_column), options.delimiter)
    with formats.open_table(*source) as table:
        kept = kept_columns(table.columns, options.columns, path)
        schema = pa.schema([(as_utf8(name), pa.string()) for name in kept])
        places = [table.columns.index(name) for name in kept]

        def as_texts(rows: list[Row]) -> tuple[pa.Table, list[Row]]:
            texts = [pa.array([as_utf8(row.fields[place]) for row in rows], pa.string()) for place in places]
            return pa.Table.from_arrays(texts, schema=schema), rows

        read = samples_of(table.columns, conditions, path, table.delimiter, partial(formats.rows_of, *source))
        yield schema, map(as_texts, in_chunks(table.rows)), read


def kept_columns(names: list[str], wanted: tuple[str, ...] | None, path: str) -> list[str]:
    """The columns to keep, by default all; raises InputError unless each name exists exactly once."""
    kept = list(names if wanted is None else dict.fromkeys(wanted))
    for name in kept:
        if (count := names.count(name)) != 1:
            raise InputError(not_one_column(path, names, name, count, "name those to keep with --columns"))
    return kept


def write_part(predictor: PredictingModel, compute: Compute, options: PartOptions, assignment: Assignment) -> Report:
    """Computes the predictions of a partition.

    The columns of the input and of predictions are followed by ``error``, or, of a selection, by ``row``, from 0 on.
    """
    started, cpu_started = time.monotonic(), time.process_time()
    rows = unreadable = memory = kept = 0
    columns, selection = options.of_predictions(predictor), options.selection
    opened = open_partition(assignment.source, options, predictor.asked_conditions)
    with opened as (own, batches, read), replacing(Path(assignment.part)) as file:
        fields = arrow_fields(columns.all, own.names)
        names = [*own.names, *(field.name for field in fields)]
        compared = fields[[column.name for column in columns.all].index(selection.by)].name
        if not selection.keeps_all:
            fields[-1] = pa.field(free_name("row", names[:-1], "_predicted"), pa.int64())
        if options.with_samples:
            fields.append(pa.field(free_name("sample", [*names, "row"], "_read"), pa.string()))
        schema = pa.schema([*own, *fields])

        def predicted() -> Iterator[pa.Table]:
            nonlocal rows, unreadable, memory
            for table, chunk in batches:
                predictions = read_and_compute(columns.reader, compute, samples := read(chunk))
                errors = [row.error or problem for row, problem in zip(chunk, predictions.errors, strict=True)]
                if options.strict:
                    refuse_errors(errors, rows)
                cells = columns.cells(predictions, errors)
                if not selection.keeps_all:
                    cells[-1] = np.arange(rows, rows + len(errors))
                if options.with_samples:
                    texts = ([getattr(each, "smiles", each), *getattr(each, "conditions", ())] for each in samples)
                    cells.append(list(map(json.dumps, texts)))
                added = map(arrow_array, cells, schema.types[-len(cells) :])
                yield pa.Table.from_arrays([*table.columns, *added], schema=schema)
                rows, unreadable = rows + len(errors), unreadable + sum(map(bool, errors))
                memory = max(memory, psutil.Process().memory_info().rss)

        with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
            for table in selected(predicted(), compared, selection, schema):
                kept += len(table)
                writer.write_table(table)
            seconds = (round(time.monotonic() - started, 3), round(time.process_time() - cpu_started, 3))
            counts = (rows, unreadable, kept, compared, *seconds, round(memory / 2**20, 1))
            report = Report(assignment.job, assignment.content, *counts)
            writer.add_key_value_metadata({FOOTER: json.dumps(dataclasses.asdict(report))})
    return report


def selected(tables: Iterable[pa.Table], compared: str, selection: Selection, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows to keep, in groups; if their number is limited, the best ones first."""
    if (limit := selection.threshold) is not None:
        pairs = ((table, table[compared].to_numpy()) for table in tables)
        tables = (each.filter(values <= limit if selection.lowest else values >= limit) for each, values in pairs)
    if selection.keep_top is None:
        return in_groups(tables, GROUP)
    return iter([best_rows(tables, compared, selection.keep_top, selection.lowest, schema)])


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
        with_value = candidates.filter(candidates[column].is_valid())
        best = with_value.sort_by([(column, "ascending" if lowest else "descending")])[:count]
    return best


@dataclasses.dataclass(eq=False)
class Models(WorkerPlugin):
    """The models of a job, which Dask sends once to each worker, also to those that join later."""

    predictor: PredictingModel
    options: PartOptions
    device: str
    name: str
    version: str = __version__

    def setup(self, worker: Worker) -> None:
        """Moves the models to the worker's device; raises InputError if the worker has another version or setup."""
        if self.version != __version__:
            raise InputError(f"the worker {worker.address} has version {__version__}: install {self.version} there")
        if worker.state.nthreads != 1:
            have = f"the worker {worker.address} has {worker.state.nthreads} threads"
            raise InputError(f"{have}: start workers with --nthreads 1, one per core")
        self.compute = choose(self.device, self.options.precision)
        self.predictor = self.predictor.to(self.compute.device)


def write_in_worker(name: str, assignment: Assignment) -> Report:
    models = get_worker().plugins[name]
    return write_part(models.predictor, models.compute, models.options, assignment)


class Processes(NamedTuple):
    """Where parts are computed."""

    scheduler: str | None = None  # address of a Dask scheduler; None: this machine
    workers: int | None = None  # processes on this machine; None: one per core
    device: str = "auto"


HERE = Processes()


@contextlib.contextmanager
def connected(processes: Processes, most: int) -> Iterator[Client]:
    """A client of a scheduler, or of at most so many single-threaded processes here, which end with it."""
    if processes.scheduler is not None:
        try:
            client = Client(processes.scheduler, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {processes.scheduler}: {error}") from None
        with silence_logging_cmgr(logging.CRITICAL), client:  # a lost scheduler is reported here
            yield client
        return
    keep_tracker()
    with dask.config.set(LOCAL):
        try:  # lost workers and failed partitions are reported here
            here = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
            cluster = LocalCluster(n_workers=min(processes.workers or available_cores(), most), **here)
        except RuntimeError as error:
            why = f"a worker process did not start, perhaps for lack of memory ({error})"
            raise InputError(f"{why}: run the same command again, with fewer --workers") from None
        try:
            with Client(cluster) as client:
                yield client
        finally:
            keep_tracker()
            with contextlib.suppress(TimeoutError):  # a process that does not end in time is ended with this one
                cluster.close()


def keep_tracker() -> None:
    """Starts Python's resource tracker, again if it was killed, without its tracebacks about unknown semaphores."""
    with open(os.devnull, "w") as nowhere, open(os.dup(2), "w") as error, warnings.catch_warnings(action="ignore"):
        os.dup2(nowhere.fileno(), 2)
        try:
            resource_tracker.ensure_running()
        finally:
            os.dup2(error.fileno(), 2)


def describe(client: Client) -> str:
    """Number of processes, memory limit of each, and address of the page that shows their progress."""
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    processes = "1 process" if len(limits) == 1 else f"{len(limits)} processes"
    bound = f" with at most {min(limits) / 2**30:.1f} GiB each" if limits and min(limits) else ""
    return f"computing in {processes}{bound}; progress at {client.dashboard_link}"


def compute_parts(
    client: Client, models: Models, assignments: list[Assignment]
) -> Iterator[tuple[Assignment, Report | BaseException]]:
    """Writes parts on the workers; yields each assignment with its report or its error as they finish."""
    names = {(DASK_GROUP, assignment.part): assignment.source for assignment in assignments}

    def name_lost_worker(event: tuple[float, dict]) -> None:
        message = event[1]
        if message["action"] == "remove-worker" and not message["expected"]:
            sources = ", ".join(names[key] for key in message["processing-tasks"] if key in names)
            tqdm.write(f"lost the worker {message['worker']}; to be computed again: {sources or 'nothing'}", sys.stderr)

    with naming_lost_scheduler(client):
        client.register_plugin(models, name=models.name)
        client.subscribe_topic("all", name_lost_worker)
    called = client.map(partial(write_in_worker, models.name), assignments, key=list(names), retries=2)
    futures = dict(zip(called, assignments, strict=True))
    try:
        for future in as_completed(list(futures)):
            with naming_lost_scheduler(client):
                outcome = future.exception() or future.result()
            keep_tracker()
            yield futures.pop(future), outcome
            future.release()
    finally:
        if client.status == "running":
            with contextlib.suppress(CancelledError, OSError):
                client.cancel(list(futures))
                client.unsubscribe_topic("all")
                client.unregister_worker_plugin(models.name)


@contextlib.contextmanager
def naming_lost_scheduler(client: Client) -> Iterator[None]:
    """Within it, errors of Dask about an unreachable scheduler are InputError."""
    try:
        yield
    except (CancelledError, OSError):
        raise InputError(f"the connection to the scheduler {client.scheduler.address} is lost") from None
