"""Parquet files, read a batch of rows at a time."""

import contextlib
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import cell_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

PARQUET = ".parquet"
READ_BUFFER = 1 << 20
ROWS_AT_ONCE = 1000


@contextlib.contextmanager
def open_parquet(path: str) -> Iterator["pq.ParquetFile"]:
    try:
        import pyarrow.parquet as pq  # an extra
    except ImportError:
        raise InputError(f"{path} is Parquet: pip install pyarrow to read it, or save it as CSV") from None
    with readable(path):
        file = pq.ParquetFile(path, buffer_size=READ_BUFFER, page_checksum_verification=True)
    with file:
        yield file


@contextlib.contextmanager
def readable(path: str) -> Iterator[None]:
    """Within it, what pyarrow raises is an InputError that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).strip().partition("\n")[0]
        raise InputError(f"cannot read {path}: {reason}") from None


def batches_of(
    file: "pq.ParquetFile", path: str, rows: int, columns: list[str] | None = None
) -> Iterator["pa.RecordBatch"]:
    with readable(path):
        yield from file.iter_batches(rows, columns=columns)


def parquet_types(path: str) -> "list[pa.DataType]":
    with open_parquet(path) as file:
        return file.schema_arrow.types


def parquet_records(path: str) -> Generator[list[str], None, None]:
    with open_parquet(path) as file, readable(path):
        yield list(file.schema_arrow.names)
        for batch in file.iter_batches(ROWS_AT_ONCE):
            columns = [[cell_text(cell) for cell in column.to_pylist()] for column in batch.columns]
            yield from map(list, zip(*columns, strict=True))
