import gzip
import zipfile
from datetime import date, datetime

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import cells, open_table, rows_of
from graphormer_sepnorm.tables.formats.cells import sheet_records
from graphormer_sepnorm.tables.formats.table import NoColumn

openpyxl = pytest.importorskip("openpyxl")


def workbook(path, *rows, **others):
    """With the ``rows`` in the first sheet, and those of other sheets by their names."""
    book = openpyxl.Workbook()
    sheets = {book.active: rows, **{book.create_sheet(name): each for name, each in others.items()}}
    for sheet, content in sheets.items():
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def read(path, smiles_column=None, sheet=None):
    with open(path, "rb") as file:
        return list(sheet_records(file, path.name, smiles_column, sheet))


def test_the_sheet_with_the_molecules_is_read(tmp_path, capsys):
    """The first one if it has them, or the only one; of several, none is guessed."""
    notes, data, more = [["about"], ["us"]], [["id", "SMILES"], ["1", "C"]], [["smiles", "M"], ["CC", "N"]]
    path = tmp_path / "a.xlsx"
    assert read(workbook(path, *notes, data=data)) == data
    assert not capsys.readouterr().err
    assert read(workbook(path, *data, more=more)) == read(path) == data
    assert capsys.readouterr().err.count("--sheet") == 1
    assert read(path, sheet="more") == more and [row.smiles for row in rows_of(path, None, None, "more")] == ["CC"]
    with pytest.raises(InputError, match="has no sheet 'mor': its sheets are Sheet, more; did you mean 'more'"):
        read(path, sheet="mor")
    with pytest.raises(InputError, match="no Excel workbook"):
        list(rows_of(tmp_path / "a.smi", None, None, "more"))
    assert read(workbook(path, data=data)) == data, "the first is empty"
    assert read(workbook(path, *notes)) == notes
    with pytest.raises(NoColumn, match=r"smiles.*Sheet \(about\); data \(M, N\)"):
        read(workbook(path, *notes, data=[["M", "N"]]))
    assert read(workbook(path, *notes, data=data, more=more), "M") == more
    other = tmp_path / "b.xlsx"
    assert read(workbook(other, *notes, data=data, more=more)) == data
    assert "more" in capsys.readouterr().err
    cells.say_unread(f"{tmp_path}/.training-1/c.xlsx", "data", "more")
    assert "of c.xlsx is" in capsys.readouterr().err


def test_a_workbook_is_a_table_like_a_csv(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["id", "SMILES", "y"], [1, "CCO", 0.5], [2, "CC"], [], [3, "C", 1, 2], [])
    with open_table(path) as table:
        rows = list(table.rows)
        assert table.columns == ["id", "SMILES", "y"]
    assert [row.fields for row in rows] == [["1", "CCO", "0.5"], ["2", "CC", ""], ["", "", ""], ["3", "C", "1"]]
    assert [row.error for row in rows] == ["", "", "the line is empty", "the row has 4 fields, the header has 3"]
    (tmp_path / "b.xlsx.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert list(rows_of(tmp_path / "b.xlsx.gz")) == rows
    with pytest.raises(InputError, match="No such file"):
        list(rows_of(tmp_path / "c.xlsx"))


def test_cells_are_texts_and_empty_ones_at_the_end_are_left_out(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["a", "b", "c"], [1, 0.1, True], [None, "x", None], [], [1.0])
    assert read(path) == [["a", "b", "c"], ["1", "0.1", "True"], ["", "x"], [], ["1"]]


def test_a_column_of_formulas_without_values_is_named(tmp_path, capsys):
    read(workbook(tmp_path / "a.xlsx", ["smiles", "y", "z", "n"], ["C", "=1+1", None, "=2"], ["C", "=2", None, 3]))
    assert capsys.readouterr().err.startswith("the cells of y in a.xlsx are formulas")


def test_a_wrong_size_of_a_sheet_hides_nothing(tmp_path):
    workbook(tmp_path / "right.xlsx", ["smiles", "id"], *(["C" * size, size] for size in range(1, 6)))
    with zipfile.ZipFile(tmp_path / "right.xlsx") as parts, zipfile.ZipFile(tmp_path / "wrong.xlsx", "w") as wrong:
        for name in parts.namelist():
            wrong.writestr(name, parts.read(name).replace(b'ref="A1:B6"', b'ref="A1:A3"'))
    right, wrong = (read(tmp_path / name) for name in ("right.xlsx", "wrong.xlsx"))
    assert wrong == right and len(right) == 6


def test_damaged_workbooks_are_a_sentence(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["a"])
    content = path.read_bytes()
    for damaged in (b"", b"a,b", content[: len(content) // 2], content.replace(b"sheet1", b"sheetX")):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.xlsx cannot be read as a workbook: ."):
            read(path)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "MAX_UNPACKED", 100)
    with pytest.raises(InputError, match=r"unpacks to .* at most 100 are read"):
        read(workbook(tmp_path / "a.xlsx", ["a"]))


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_cells_are_texts_as_in_a_csv(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "ROWS_AT_ONCE", 2)
    columns = {
        "Smiles": ["CCO", None, "C"], "n": [1, None, 3], "y": pa.array([0.1, float("nan"), 2], pa.float32()),
        "day": [datetime(2024, 5, 31), datetime(2024, 5, 31, 12, 30), None], "date": [date(2024, 5, 31), None, None],
        "said": pa.array(["a", "b", "a"]).dictionary_encode(),
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with open_table(tmp_path / "a.parquet") as table:
        assert table.columns == list(columns)
        rows = list(table.rows)
    assert [row.fields for row in rows] == [
        ["CCO", "1", "0.10000000149011612", "2024-05-31", "2024-05-31", "a"],
        ["", "", "", "2024-05-31 12:30:00", "", "b"],
        ["C", "3", "2.0", "", "", "a"],
    ]
    assert [row.smiles for row in rows] == ["CCO", "", "C"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 20 + b"PAR1", b"smiles\nC\n"])
def test_what_is_no_parquet_is_named(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"^cannot read .*a\.parquet: "), open_table(tmp_path / "a.parquet"):
        pass


def test_a_page_that_was_damaged_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    plain = {"write_statistics": False, "compression": "none", "use_dictionary": False}
    pq.write_table(pa.table({"smiles": ["CCO", "C" * 50]}), path, write_page_checksum=True, **plain)
    path.write_bytes(path.read_bytes().replace(b"C" * 50, b"N" * 50))
    with pytest.raises(InputError, match="cannot read"), open_table(path) as table:
        list(table.rows)
