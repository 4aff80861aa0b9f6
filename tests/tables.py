"""Tables that tests write and read."""

from pathlib import Path

from graphormer_sepnorm.tables.formats import Row, open_table


def read(path: str | Path, *options: str) -> tuple[list[str], list[Row]]:
    """The columns and the rows of a table."""
    with open_table(path, *options) as table:
        return table.columns, list(table.rows)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
