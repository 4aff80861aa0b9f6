"""Parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphormer_sepnorm.tables.formats.table import Row, Table, extra, with_free_names
from graphormer_sepnorm.tables.writers.base import COMPLETED, AddedColumn, Cells, TableWriter, as_utf8, refuse_repeated

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetWriter(TableWriter):
    """Parquet, with input columns as text unless they have types; it grows as an Arrow stream."""

    def __init__(self, columns: list[str], added: Sequence[AddedColumn], like: Table | None = None):
        self.parquet = extra("pyarrow.parquet", "Parquet needs pyarrow: pip install pyarrow, or write .csv")
        self.pyarrow = pyarrow = extra("pyarrow", "")
        columns = list(map(as_utf8, columns))
        refuse_repeated(columns, "Parquet")
        read_types = (like.types if like else ()) or [pyarrow.string()] * len(columns)
        types = [kind if is_written_as_text(kind) else pyarrow.string() for kind in read_types]
        self.schema = pyarrow.schema([*zip(columns, types, strict=True), *arrow_fields(added, columns)])

    def header(self) -> bytes:
        return self.schema.serialize().to_pybytes()

    def encode(self, rows: list[Row], added: list[Cells]) -> bytes:
        fields = zip(*(row.fields for row in rows), strict=True)
        own = [typed(list(map(as_utf8, column)), kind) for column, kind in zip(fields, self.schema.types, strict=False)]
        columns = [*own, *map(arrow_array, added, self.schema.types[len(own) :])]
        return self.pyarrow.record_batch(columns, schema=self.schema).serialize().to_pybytes()

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(COMPLETED)
        with (
            self.pyarrow.ipc.open_stream(grown) as batches,
            self.parquet.ParquetWriter(completed, self.schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        return completed


def arrow_fields(added: Sequence[AddedColumn], taken: list[str]) -> "list[pa.Field]":
    import pyarrow as pa  # an extra

    kinds = {"text": pa.string(), "number": pa.float32(), "precise": pa.float64()}
    names = with_free_names((column.name for column in added), taken)
    types = (kinds.get(column.kind) or pa.list_(pa.float32(), len(column.flat)) for column in added)
    return list(map(pa.field, names, types))


def arrow_array(cells: Cells, kind: "pa.DataType") -> "pa.Array":
    """The cells of a column of a type; numbers that are NaN are null, vectors stay as they are."""
    import pyarrow as pa  # an extra

    if not isinstance(cells, np.ndarray):
        return pa.array(list(map(as_utf8, cells)), pa.string())
    if cells.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(cells.astype(np.float32).reshape(-1), cells.shape[1])
    return pa.array(cells.astype(kind.to_pandas_dtype()), from_pandas=True)


def is_written_as_text(kind: "pa.DataType") -> bool:
    """Whether ``cell_text`` of a value of this type can be read as the value again."""
    import pyarrow.types as of  # an extra

    kinds = (of.is_integer, of.is_floating, of.is_decimal, of.is_boolean, of.is_date, of.is_timestamp)
    return any(is_kind(kind) for is_kind in kinds)


def typed(texts: list[str], kind: "pa.DataType") -> "pa.Array":
    """Texts as values of a type; an empty one is null unless the type is text."""
    import pyarrow as pa  # an extra

    if kind == pa.string():
        return pa.array(texts, pa.string())
    column = pa.array([text or None for text in texts], pa.string())
    if pa.types.is_timestamp(kind) and kind.unit == "ms":  # texts have microseconds
        column = column.cast(pa.timestamp("us", kind.tz))
    return column.cast(kind)
