"""Tables that tests write and read."""

import csv
from pathlib import Path

from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import Row


def read(path: str | Path, *options: str) -> tuple[list[str], list[Row]]:
    """The columns and the rows of a table."""
    with open_table(path, *options) as table:
        return table.columns, list(table.rows)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table(path: Path, *lines: str) -> str:
    """The path of a table of these lines."""
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def records(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV by the names of their columns, as their texts."""
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def chains(count: int = 20, first: int = 1) -> list[str]:
    """Rows of alkanes and their lengths."""
    return [f"{'C' * number},{number}" for number in range(first, first + count)]
