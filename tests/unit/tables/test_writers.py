"""Tables in every format: the same cells in all of them."""

import csv
import io
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from openpyxl import load_workbook

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables import writers
from graphormer_sepnorm.tables.formats import Row, open_table
from graphormer_sepnorm.tables.writers import WRITERS, AddedColumn, DelimitedWriter, ExcelWriter, as_csv, cell_of_text

COLUMNS = ["smiles", "id", "x"]
ADDED = [AddedColumn("x"), AddedColumn("said", "text"), AddedColumn("many", "vector", ("m0", "m1"))]
ROWS = [Row(["CCO", "007", "1.5"], "CCO"), Row(["C[C", "=1+1", "caf\udce9"], "C[C"), Row(["C", "", "-3"], "C")]
CELLS = [
    np.array([1 / 3, np.nan, 5], np.float32),
    ["", "no, \x01 SMILES", "=A1"],
    np.array([[1, 2], [np.nan, np.nan], [0.25, 1e-7]], np.float32),
]


def written(suffix: str, folder: Path, parts: int = 1) -> Path:
    """The table, of which some rows come first."""
    writer = WRITERS[suffix](COLUMNS, ADDED)
    grown = folder / f"out{suffix}.partial"
    content = writer.header()
    for part in np.array_split(np.arange(len(ROWS)), parts):
        first, end = part[0], part[-1] + 1
        content += writer.encode(ROWS[first:end], [cells[first:end] for cells in CELLS])
    grown.write_bytes(content)
    return writer.complete(grown).rename(folder / f"out{suffix}")


def test_lines_of_fields_by_hand():
    assert as_csv([["a", 'b"c'], ["d\te", "\udcff"]], "\t") == b'a\t"b""c"\n"d\te"\t\xff\n'
    assert as_csv([["a", "b,c"], [1, None]]) == b'a,"b,c"\n1,\n'
    assert as_csv([["a\rb", "c"], ["d", "e\n"]]) == b'"a\rb","c"\nd,"e\n"\n'


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_lines_of_a_table_by_hand(tmp_path, suffix, delimiter):
    content = written(suffix, tmp_path, parts=2).read_bytes()
    assert b"caf\xe9" in content
    header, *rows = csv.reader(io.StringIO(content.decode("latin-1")), delimiter=delimiter)
    assert header == ["smiles", "id", "x", "x_predicted", "said", "m0", "m1"]
    assert rows == [
        ["CCO", "007", "1.5", "0.3333333", "", "1", "2"],
        ["C[C", "=1+1", "caf\xe9", "", "no, \x01 SMILES", "", ""],
        ["C", "", "-3", "5", "=A1", "0.25", "1e-07"],
    ]


def test_parquet_keeps_the_numbers(tmp_path):
    table = pytest.importorskip("pyarrow.parquet").read_table(written(".parquet", tmp_path, parts=2))
    assert table.column_names == ["smiles", "id", "x", "x_predicted", "said", "many"]
    found = table.to_pydict()
    assert found["x"] == ["1.5", "caf?", "-3"] and found["said"] == CELLS[1]
    assert found["x_predicted"] == [float(np.float32(1 / 3)), None, 5.0]
    assert found["many"][2] == CELLS[2][2].tolist() and np.isnan(found["many"][1]).all()


def test_parquet_keeps_the_types_of_columns_that_come_from_parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "smiles": ["C", "", "CCO"],
        "count": pa.array([1, None, 255], pa.uint8()),
        "y": pa.array([0.1, None, -1e30], pa.float32()),
        "price": pa.array([Decimal("1.50"), None, Decimal("0E-9")], pa.decimal128(30, 9)),
        "sold": [True, None, False],
        "day": [date(2024, 5, 31), None, date(1, 1, 1)],
        "time": pa.array([datetime(2024, 5, 31), None, datetime(2024, 5, 31, 1, 2, 3, 456)], pa.timestamp("us", "UTC")),
        "milliseconds": pa.array(
            [datetime(2024, 5, 31, 1, 2, 3, 5000), None, datetime(9999, 1, 1)], pa.timestamp("ms")
        ),
    }
    given = pa.table(columns | {"list": [[1], [2], [3]]})
    pq.write_table(given, tmp_path / "in.parquet")
    with open_table(tmp_path / "in.parquet") as table:
        writer = WRITERS[".parquet"](table.columns, [AddedColumn("p")])
        writer.keep_types(table.types)
        grown = tmp_path / "grown"
        grown.write_bytes(writer.header() + writer.encode(list(table.rows), [np.arange(3)]))
    found = pq.read_table(writer.complete(grown))
    assert found.select(list(columns)) == given.select(list(columns))
    assert found["list"].to_pylist() == ["[1]", "[2]", "[3]"] and found["p"].to_pylist() == [0, 1, 2]


def test_names_of_columns_in_parquet_have_a_question_mark_for_other_bytes(tmp_path):
    writer = WRITERS[".parquet"](["smiles", "caf\udce9"], [AddedColumn("p")])
    assert writer.names == ["smiles", "caf?", "p"]
    with pytest.raises(InputError, match="several columns 'caf\\?'"):
        WRITERS[".parquet"](["caf?", "caf\udce9"], [])


def test_a_sheet_has_numbers_and_no_formulas(tmp_path):
    path = written(".xlsx", tmp_path, parts=2)
    rows = [[cell.value for cell in row] for row in load_workbook(path).active.iter_rows()]
    assert rows == [
        ["smiles", "id", "x", "x_predicted", "said", "m0", "m1"],
        ["CCO", "007", 1.5, 0.3333333, None, 1, 2],
        ["C[C", "=1+1", "caf?", None, "no, ? SMILES", None, None],
        ["C", None, -3, 5, "=A1", 0.25, 1e-07],
    ]
    assert {cell.data_type for row in load_workbook(path).active.iter_rows() for cell in row} == {"s", "n"}


@pytest.mark.parametrize("suffix", WRITERS)
def test_what_is_written_is_read(tmp_path, suffix):
    with open_table(written(suffix, tmp_path)) as table:
        assert table.columns[:4] == ["smiles", "id", "x", "x_predicted"]
        rows = list(table.rows)
    assert [row.smiles for row in rows] == ["CCO", "C[C", "C"]
    assert [row.fields[1] for row in rows] == ["007", "=1+1", ""] and not any(row.error for row in rows)
    assert [row.fields[3][:5] for row in rows] in (["0.333", "", "5"], ["0.333", "", "5.0"])


@pytest.mark.parametrize(
    ("text", "cell"),
    [("1", 1), ("-2.5", -2.5), ("1e-07", 1e-07), ("0012", "0012"), ("1.50", "1.50"), ("nan", "nan"), ("inf", "inf"),
     ("1" * 16, "1" * 16), ("1_000", "1_000"), (" 1", " 1"), ("", "")],
)  # fmt: skip
def test_only_what_python_writes_so_is_a_number(text, cell):
    assert cell_of_text(text) == cell and isinstance(cell_of_text(text), type(cell))


def test_a_sheet_of_too_many_columns_is_refused(monkeypatch):
    monkeypatch.setattr(writers, "COLUMNS_OF_SHEET", 6)
    with pytest.raises(InputError, match="a sheet has at most 6 columns, not 7"):
        ExcelWriter(COLUMNS, ADDED)


def test_columns_of_one_name_are_not_written_as_parquet_that_nothing_reads():
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="several columns 'y', and Parquet needs a name for each"):
        WRITERS[".parquet"](["smiles", "y", "y"], ADDED)
    assert DelimitedWriter(["smiles", "y", "y"], ADDED).header() == b"smiles,y,y,x,said,m0,m1\n"
