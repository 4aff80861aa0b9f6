"""Reads the partitions of a library: Parquet, or any table that ``open_table`` reads, ``CHUNK`` rows at a time."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.workers import CHUNK
from graphormer_sepnorm.tables.formats import (
    PARQUET,
    Row,
    Table,
    find_column,
    kind_of,
    not_one_column,
    open_table,
    smiles_of_rows,
)

READ_BUFFER = 1 << 20
Read = TypeVar("Read")


@dataclass(frozen=True)
class Batch:
    """Some rows of a partition.

    Attributes:
        columns: those to keep, one row per SMILES.
        smiles: the molecules.
        errors: why a row cannot be used, or "".
    """

    columns: pa.Table
    smiles: list[str]
    errors: list[str]


@dataclass(frozen=True)
class Partition:
    """An open partition: the schema of the columns to keep, and its rows, read lazily."""

    schema: pa.Schema
    batches: Iterator[Batch]


@contextlib.contextmanager
def open_partition(
    path: str, columns: tuple[str, ...] | None = None, smiles_column: str | None = None, delimiter: str | None = None
) -> Iterator[Partition]:
    """Opens a partition.

    Args:
        path: ``.parquet``, whose columns keep their types, or a file as for ``open_table``, whose columns are text.
        columns: names of the columns to keep; None: all.
        smiles_column, delimiter: as ``open_table``.

    Raises:
        InputError: as ``open_table``; a Parquet file is damaged or its SMILES are not text; or a column is missing or
            not unique. Also raised while rows are read.
    """
    if kind_of(path) == PARQUET:
        with readable(path):
            file = pq.ParquetFile(path, buffer_size=READ_BUFFER, page_checksum_verification=True)
        with file:
            yield parquet_partition(file, path, columns, smiles_column)
    else:
        with open_table(path, smiles_column, delimiter) as table:
            yield text_partition(table, path, columns)


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    """Context manager: errors of pyarrow become InputError with the name of the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).strip().partition("\n")[0]
        raise InputError(f"cannot read {path}: {reason}") from None


def parquet_partition(
    file: pq.ParquetFile, path: str, columns: tuple[str, ...] | None, smiles_column: str | None
) -> Partition:
    """The rows of a Parquet file; arguments and errors as ``open_partition``."""
    schema = file.schema_arrow.remove_metadata()
    smiles = schema.names[find_column(schema.names, smiles_column, path)]
    if not is_text(schema.field(smiles).type):
        raise InputError(f"the column {smiles!r} of {path} is {schema.field(smiles).type}, not text")
    kept = kept_columns(schema.names, columns, path)

    def batches() -> Iterator[Batch]:
        for batch in every(file.iter_batches(CHUNK, columns=list(dict.fromkeys([smiles, *kept]))), path):
            texts = [text or "" for text in batch.column(smiles).to_pylist()]
            table = pa.Table.from_batches([batch]).select(kept).replace_schema_metadata(None)
            yield Batch(table, texts, [""] * len(texts))

    return Partition(pa.schema([schema.field(name) for name in kept]), batches())


def every(items: Iterator[Read], path: str) -> Iterator[Read]:
    """The items of a pyarrow iterator; raises InputError as ``readable``."""
    while True:
        with readable(path):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def text_partition(table: Table, path: str, columns: tuple[str, ...] | None) -> Partition:
    """The rows of a table, as text; arguments and errors as ``open_partition``."""
    kept = kept_columns(table.columns, columns, path)
    places = [table.columns.index(name) for name in kept]
    schema = pa.schema([(name, pa.string()) for name in kept])

    def batch(rows: list[Row]) -> Batch:
        texts = [pa.array([as_utf8(row.fields[place]) for row in rows], pa.string()) for place in places]
        return Batch(pa.Table.from_arrays(texts, schema=schema), smiles_of_rows(rows), [row.error for row in rows])

    return Partition(schema, map(batch, table.chunks(CHUNK)))


def as_utf8(text: str) -> str:
    """The text with a question mark in place of each byte that is not UTF-8."""
    return text.encode(errors="replace").decode()


def kept_columns(names: list[str], wanted: tuple[str, ...] | None, path: str) -> list[str]:
    """The columns to keep, by default all; raises InputError unless each name exists exactly once."""
    kept = list(names if wanted is None else dict.fromkeys(wanted))
    counts = Counter(names)
    for name in kept:
        if counts[name] != 1:
            raise InputError(f"{not_one_column(path, names, name, counts[name])}: name those to keep with --columns")
    return kept
