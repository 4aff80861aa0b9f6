"""Writers of tables that grow in parts, with the input's columns and added ones: one for each format."""

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats.table import Row, Table
from graphormer_sepnorm.tables.writers.base import Added, Cells, DelimitedWriter, TableWriter
from graphormer_sepnorm.tables.writers.excel import ExcelWriter
from graphormer_sepnorm.tables.writers.parquet import ParquetWriter
from graphormer_sepnorm.tables.writers.sdf import SdfWriter

MakeWriter = Callable[[list[str], Added, Table | None], TableWriter]
# By suffix.
WRITERS: dict[str, MakeWriter] = {
    ".csv": DelimitedWriter,
    ".tsv": partial(DelimitedWriter, delimiter="\t"),
    ".parquet": ParquetWriter,
    ".xlsx": ExcelWriter,
    ".sdf": SdfWriter,
}


def find_writer(out: Path, writers: Mapping[str, MakeWriter] = WRITERS) -> MakeWriter:
    if out.suffix.lower() not in writers:
        raise InputError(f"a table is written as {', '.join(writers)}, not as {out.suffix or out.name!r}")
    return writers[out.suffix.lower()]


def write_whole(
    out: Path,
    columns: list[str],
    rows: list[Row],
    added: Added,
    cells: list[Cells],
    like: Table | None = None,
    writers: Mapping[str, MakeWriter] = WRITERS,
) -> None:
    """Writes a table at once, as the suffix says, with the separators of a table it is ``like``; replaces a file."""
    writer = find_writer(out, writers)(columns, added, like)
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder) / "grown"
        grown.write_bytes(writer.header() + writer.encode(rows, cells))
        write_atomically(out, writer.complete(grown).read_bytes())
