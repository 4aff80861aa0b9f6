"""SDF: molecules with coordinates, and all columns as data items."""

from graphormer_sepnorm.chem.drawing import block_of, is_readable
from graphormer_sepnorm.tables.formats.table import Row, Table
from graphormer_sepnorm.tables.rows import id_column_among
from graphormer_sepnorm.tables.writers import base


class SdfWriter(base.TableWriter):
    """An SDF with all columns as data items, and structures and titles of an SDF, else 2D coordinates and ids.

    A molecule that cannot be read has no atoms.
    """

    def __init__(self, columns: list[str], added: base.Added, like: Table | None = None):
        base.refuse_repeated(columns, "an SDF")
        name = id_column_among(columns)
        self.added, self.id_place = added, None if name is None else columns.index(name)
        self.num_before = like.num_of_structure if like else 0  # columns that are no data items
        self.items = [in_one_line(name) for name in base.flat_names(columns, added)[self.num_before :]]

    def header(self) -> bytes:
        return b""

    def encode(self, rows: list[Row], added: list[base.Cells]) -> bytes:
        return "".join(map(self.record, rows, base.texts_of_rows(added, self.added))).encode(errors="surrogateescape")

    def record(self, row: Row, added: list[str]) -> str:
        title = "" if self.id_place is None else row.fields[self.id_place]
        own = row.structure if row.structure and not row.error and is_readable(row.structure) else ""
        block = own or block_of("" if row.error else row.smiles, in_one_line(title))
        texts = zip(self.items, [*row.fields[self.num_before :], *added], strict=True)
        items = "".join(f">  <{name}>\n{in_one_line(text)}\n\n" for name, text in texts)
        return f"{block.rstrip()}\n{items}$$$$\n"


def in_one_line(text: str) -> str:
    """A text that does not end a data item or a record."""
    text = " ".join(text.splitlines())
    return f" {text}" if text.startswith("$$$$") else text
