"""Tables in every format: the same cells in all of them."""

import codecs
import csv
import io
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from openpyxl import load_workbook
from rdkit import Chem

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import Row
from graphormer_sepnorm.tables.rows import with_decimal
from graphormer_sepnorm.tables.writers import WRITERS, excel, write_whole
from graphormer_sepnorm.tables.writers.base import AddedColumn, DelimitedWriter, as_csv
from graphormer_sepnorm.tables.writers.excel import cell_of_text, number_format

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
        "last": pa.array([datetime(2024, 5, 31, 1, 2, 3, 5000), None, datetime(9999, 1, 1)], pa.timestamp("ms")),
    }
    given = pa.table(columns | {"list": [[1], [2], [3]]})
    pq.write_table(given, tmp_path / "in.parquet")
    with open_table(tmp_path / "in.parquet") as table:
        writer = WRITERS[".parquet"](table.columns, [AddedColumn("p")], table)
        grown = tmp_path / "grown"
        grown.write_bytes(writer.header() + writer.encode(list(table.rows), [np.arange(3)]))
    found = pq.read_table(writer.complete(grown))
    assert found.select(list(columns)) == given.select(list(columns))
    assert found["list"].to_pylist() == ["[1]", "[2]", "[3]"] and found["p"].to_pylist() == [0, 1, 2]


def test_a_sheet_has_numbers_and_no_formulas(tmp_path):
    sheet = load_workbook(written(".xlsx", tmp_path, parts=2)).active
    rows = [[cell.value for cell in row[1:]] for row in sheet.iter_rows()]
    assert rows == [
        ["smiles", "id", "x", "x_predicted", "said", "m0", "m1"],
        ["CCO", "007", 1.5, 0.3333333, None, 1, 2],
        ["C[C", "=1+1", "caf?", None, "no, ? SMILES", None, None],
        ["C", None, -3, 5, "=A1", 0.25, 1e-07],
    ]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s", "n"}


def test_a_sheet_has_pictures_of_molecules_that_can_be_read_and_decimals_of_its_numbers(tmp_path, monkeypatch, capsys):
    path = written(".xlsx", tmp_path)
    sheet = load_workbook(path).active
    assert [picture.anchor._from.row for picture in sheet._images] == [1, 3]  # from 0, below the header
    assert sheet.row_dimensions[2].height > 90 and sheet.freeze_panes == "B2" and sheet["A1"].value == excel.PICTURES
    formats = [sheet.cell(2, column).number_format for column in range(2, 9)]
    assert formats == ["General"] * 3 + ["0.00", "General", "0.000", "0.00"]
    before = path.read_bytes()
    assert written(".xlsx", tmp_path, parts=3).read_bytes() == before
    monkeypatch.setattr(excel, "MOST_PICTURES", 2)
    sheet = load_workbook(written(".xlsx", tmp_path)).active
    assert not sheet._images and [cell.value for cell in sheet[1]][:2] == COLUMNS[:2] and sheet.freeze_panes == "A2"
    assert "no pictures" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("numbers", "style"),
    [([8.25, -7.5], "0.00"), ([0.0123], "0.0000"), ([151.5, 3e5], "0"), ([1.0, 2.0], "0"), ([2e-9], "0.00E+00"),
     ([0.0], "0"), ([0.5, 0.75], "0.000"), ([1e-7, 2e-7, 0.001, 0.01, 0.02], "0.00E+00")],
)  # fmt: skip
def test_decimals_are_those_of_three_digits_of_a_usual_number(numbers, style):
    assert number_format(numbers) == style


def sdf_of(molecules: dict[str, str], path: Path) -> Path:
    """An SDF with 3D coordinates, by title the SMILES."""
    with Chem.SDWriter(str(path)) as out:
        for title, smiles in molecules.items():
            mol = Chem.MolFromSmiles(smiles)
            conformer = Chem.Conformer(mol.GetNumAtoms())
            for atom in range(mol.GetNumAtoms()):
                conformer.SetAtomPosition(atom, (1.5 * atom, 0.25, -3.0))
            mol.AddConformer(conformer)
            mol.SetProp("_Name", title)
            mol.SetProp("IC50", "12")
            out.write(mol)
    return path


def test_an_sdf_keeps_structures_and_has_the_texts_of_a_csv(tmp_path):
    with open_table(sdf_of({"a": "CCO", "b": "C[NH3+]"}, tmp_path / "in.sdf")) as table:
        rows = list(table.rows)
        writer = WRITERS[".sdf"](table.columns, [AddedColumn("p"), AddedColumn("said", "text")], table)
    (tmp_path / "out.sdf").write_bytes(writer.encode(rows, [np.array([1 / 3, np.nan]), ["", "$$$$\nno"]]))
    first, second = Chem.SDMolSupplier(str(tmp_path / "out.sdf"))
    assert first.GetPropsAsDict(autoConvertStrings=False) == {"IC50": "12", "p": "0.3333333", "said": ""}
    assert second.GetPropsAsDict(autoConvertStrings=False) == {"IC50": "12", "p": "", "said": " $$$$ no"}
    assert (first.GetProp("_Name"), Chem.MolToSmiles(second)) == ("a", "C[NH3+]")
    assert first.GetConformer().GetPositions().tolist() == [[1.5 * atom, 0.25, -3.0] for atom in range(3)]
    with open_table(tmp_path / "out.sdf") as table:
        assert table.columns == ["smiles", "name", "IC50", "p", "said"]


def test_an_unreadable_block_is_written_without_atoms(tmp_path):
    """RDKit reads no sanitized molecule of a carbon with five bonds, and none of a record without a structure."""
    star = Chem.MolFromSmiles("C(C)(C)(C)(C)C", sanitize=False)
    path = sdf_of({"a": "CCO"}, tmp_path / "in.sdf")
    path.write_text(f"{path.read_text()}star{Chem.MolToMolBlock(star, kekulize=False)}$$$$\nbroken\n\n\n$$$$\n")
    with open_table(path) as table:
        rows = list(table.rows)
        content = WRITERS[".sdf"](table.columns, [AddedColumn("p")], table).encode(rows, [np.zeros(3)])
    (tmp_path / "out.sdf").write_bytes(content)
    written = [(each.GetProp("_Name"), each.GetNumAtoms()) for each in Chem.SDMolSupplier(str(tmp_path / "out.sdf"))]
    assert written == [("a", 3), ("star", 0), ("broken", 0)]


def test_an_sdf_of_other_rows_has_2d_coordinates_and_the_id_for_a_title(tmp_path):
    write_whole(tmp_path / "out.sdf", COLUMNS, ROWS, ADDED, CELLS)
    first, second, third = Chem.SDMolSupplier(str(tmp_path / "out.sdf"))
    assert [each.GetProp("_Name") for each in (first, third)] == ["007", ""] and Chem.MolToSmiles(first) == "CCO"
    positions = first.GetConformer().GetPositions()
    assert np.linalg.norm(positions[0] - positions[1]) == pytest.approx(1.5, abs=0.1) and not positions[:, 2].any()
    assert second.GetNumAtoms() == 0 and second.GetProp("id") == "=1+1"
    assert first.GetPropsAsDict(autoConvertStrings=False) == {
        "smiles": "CCO", "id": "007", "x": "1.5", "x_predicted": "0.3333333", "said": "", "m0": "1", "m1": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("suffix", "given", "line"),
    [
        (".csv", "smiles;y\nC;1,5\n", b"C;1,5;0,25;0,5;1\n"),
        (".csv", "smiles;y\nC;1.5\n", b"C;1.5;0.25;0.5;1\n"),
        (".csv", 'smiles,y\nC,"1,5"\n', b'C,"1,5",0.25,0.5,1\n'),
        (".tsv", "smiles;y\nC;1,5\n", b"C\t1,5\t0,25\t0,5\t1\n"),
        (".csv", "smiles\ty\nC\t1.5\n", b"C,1.5,0.25,0.5,1\n"),
    ],
)
def test_semicolons_and_decimal_commas_of_the_input_stay(tmp_path, suffix, given, line):
    (tmp_path / "in.csv").write_text(given)
    added = [AddedColumn("p"), AddedColumn("e", "vector", ("e0", "e1"))]
    with open_table(tmp_path / "in.csv") as opened:
        table = with_decimal(opened)
        writer = WRITERS[suffix](table.columns, added, table)
        content = writer.header() + writer.encode(list(table.rows), [np.array([0.25]), np.array([[0.5, 1]])])
    assert content.endswith(line) and content.startswith(codecs.BOM_UTF8) == (b";" in line)
    (tmp_path / "out.csv").write_bytes(content)
    with open_table(tmp_path / "out.csv") as table:
        assert table.columns == ["smiles", "y", "p", "e0", "e1"]


@pytest.mark.parametrize("suffix", WRITERS)
def test_what_is_written_is_read(tmp_path, suffix):
    with open_table(written(suffix, tmp_path)) as table:
        first, rows = next(place for place, name in enumerate(table.columns) if name == "smiles"), list(table.rows)
        assert table.columns[first : first + 4] == ["smiles", "id", "x", "x_predicted"]
    assert [row.fields[first] for row in rows] == ["CCO", "C[C", "C"]
    assert [row.fields[first + 1] for row in rows] == ["007", "=1+1", ""] and not any(row.error for row in rows[::2])
    assert [row.fields[first + 3][:5] for row in rows] in (["0.333", "", "5"], ["0.333", "", "5.0"])


@pytest.mark.parametrize(
    ("text", "cell"),
    [("1", 1), ("-2.5", -2.5), ("1e-07", 1e-07), ("0012", "0012"), ("1.50", "1.50"), ("nan", "nan"), ("inf", "inf"),
     ("1" * 16, "1" * 16), ("1_000", "1_000"), (" 1", " 1"), ("", "")],
)  # fmt: skip
def test_only_what_python_writes_so_is_a_number(text, cell):
    assert cell_of_text(text) == cell and isinstance(cell_of_text(text), type(cell))


@pytest.mark.parametrize("suffix", [".parquet", ".sdf"])
def test_columns_of_one_name_are_not_written_as_what_nothing_reads(suffix):
    with pytest.raises(InputError, match="several columns 'y'"):
        WRITERS[suffix](["smiles", "y", "y"], ADDED)
    assert DelimitedWriter(["smiles", "y", "y"], ADDED).header() == b"smiles,y,y,x,said,m0,m1\n"
