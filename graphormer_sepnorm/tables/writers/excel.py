"""Excel workbooks."""

import io
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from graphormer_sepnorm.chem.drawing import picture_of
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.cells import PICTURES
from graphormer_sepnorm.tables.formats.table import Row, Table, extra
from graphormer_sepnorm.tables.writers import base

COLUMNS_OF_SHEET = 16_384
CHARACTERS_OF_CELL = 32_767
DIGITS_OF_CELL = 15
NO_CHARACTER_OF_SHEET = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
MOST_PICTURES = 2_000
WIDTH, HEIGHT = 200, 130  # of a picture, in pixels
Pairs = Sequence[tuple[str, str]]
SAMPLE = 1_000  # rows that decimals and widths of columns are chosen by
NARROWEST, WIDEST = 8, 45  # column, in characters


class ExcelWriter(base.TableWriter):
    """A workbook of one sheet, maybe with pictures; it grows as lines of JSON that begin with the SMILES.

    Pairs of texts ``about`` it come in a second sheet.
    """

    most_rows = 1_048_575  # below the names of the columns

    def __init__(self, columns: list[str], added: base.Added, like: Table | None = None, about: Pairs = ()):
        self.xlsxwriter = extra("xlsxwriter", "a workbook needs XlsxWriter: pip install XlsxWriter, or write .csv")
        self.names, self.added, self.num_own = base.flat_names(columns, added), added, len(columns)
        self.about, self.decimal = about, like.decimal if like else "."
        if len(self.names) >= COLUMNS_OF_SHEET:
            raise InputError(f"a sheet has at most {COLUMNS_OF_SHEET - 1:,} columns, not {len(self.names)}: write .csv")

    def header(self) -> bytes:
        return as_json_lines([[PICTURES, *self.names]])

    def encode(self, rows: list[Row], added: list[base.Cells]) -> bytes:
        numbers = [isinstance(column, np.ndarray) for column in added for _ in range(base.width_of(column))]
        return as_json_lines(
            [
                "" if row.error else row.smiles,
                *(cell_of_text(text, self.decimal) for text in row.fields),
                *(float(text) if is_number and text else text for is_number, text in zip(numbers, texts, strict=True)),
            ]
            for row, texts in zip(rows, base.texts_of_rows(added, self.added), strict=True)
        )

    def complete(self, grown: Path) -> Path:
        completed = grown.with_suffix(base.COMPLETED)
        settings = {"constant_memory": True, "strings_to_urls": False, "strings_to_formulas": False}
        with open(grown, "rb") as lines, self.xlsxwriter.Workbook(completed, settings) as book:
            rows = sum(1 for _ in lines) - 1
            lines.seek(0)
            book.set_properties({"created": datetime(2000, 1, 1)})  # so that the same table has the same bytes
            self.fill(book, lines, has_pictures=rows <= MOST_PICTURES)
            if self.about:
                sheet = book.add_worksheet("About")
                sheet.set_column(0, 1, WIDEST)
                for number, texts in enumerate(self.about):
                    sheet.write_row(number, 0, map(text_of_sheet, texts))
        if rows > MOST_PICTURES:
            print(f"the workbook has no pictures of molecules, as it has more than {MOST_PICTURES:,}", file=sys.stderr)
        return completed

    def fill(self, book: Any, lines: Iterable[bytes], has_pictures: bool) -> None:
        sheet = book.add_worksheet("molecules")
        names, *first = map(json.loads, islice(lines, 1 + SAMPLE))
        places = range(0 if has_pictures else 1, len(names))  # of the columns that are written
        bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        styles: dict[int, Any] = {}
        for place in places:
            cells = [row[place] for row in first if row[place] != ""]
            numbers = [cell for cell in cells if not isinstance(cell, str)] if place > self.num_own else []
            cell_format = {"num_format": number_format(numbers)} if numbers else {}
            styles[place] = book.add_format({"valign": "top"} | cell_format)
            lengths = [len(cell) if isinstance(cell, str) else NARROWEST for cell in cells]
            width = min(max([NARROWEST, len(names[place]), *lengths]) + 1, WIDEST)
            sheet.set_column(place - places[0], place - places[0], width)
            sheet.write_string(0, place - places[0], text_of_sheet(names[place]), bold)
        sheet.freeze_panes(1, int(has_pictures))
        if has_pictures:
            sheet.set_column_pixels(0, 0, WIDTH)
        for number, row in enumerate(chain(first, map(json.loads, lines)), 1):
            picture = picture_of(row[0], WIDTH, HEIGHT) if has_pictures and row[0] else None
            if picture:
                sheet.set_row_pixels(number, HEIGHT)
                options = {"image_data": io.BytesIO(picture), "object_position": 1, "description": row[0][:200]}
                sheet.insert_image(number, 0, f"{number}.png", options)
            for place, cell in enumerate(row[1:], 1):
                if not isinstance(cell, str):
                    sheet.write_number(number, place - places[0], cell, styles[place])
                elif cell:
                    sheet.write_string(number, place - places[0], text_of_sheet(cell), styles[place])


def number_format(numbers: Sequence[float]) -> str:
    """Three digits of the median, none behind the point if all are whole; powers of ten if a tenth is far smaller."""
    size, small = (float(each) for each in np.quantile(np.abs(numbers), (0.5, 0.1)))
    if not size or all(number == int(number) for number in numbers):
        return "0"
    decimals = 2 - math.floor(math.log10(size))
    if decimals > 6 or 0 < 1000 * small < size:
        return "0.00E+00"
    return f"0.{'0' * decimals}" if decimals > 0 else "0"


def as_json_lines(rows: Iterable[list]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def cell_of_text(text: str, decimal: str = ".") -> str | float:
    """A number where the text is how Python writes that number, else the text: 00123 stays what it is."""
    if len(text) <= DIGITS_OF_CELL:
        plain = text.replace(decimal, ".")
        for read in (int, float):
            try:
                number = read(plain)
            except ValueError:
                continue
            if str(number) == plain and math.isfinite(number):
                return number
    return text


def text_of_sheet(text: str) -> str:
    """A text as a cell can hold it: invalid XML characters become question marks, and long texts are truncated."""
    return NO_CHARACTER_OF_SHEET.sub("?", text)[:CHARACTERS_OF_CELL]
