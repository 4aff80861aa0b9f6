import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import Row
from tests.tables import read, write


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_delimiters_line_ends_and_byte_order_mark(tmp_path, delimiter, end, mark):
    lines = [["id", "Smiles", "note"], ["007", "CCO", "x y"], ["1e5", "C", ""], ["007", "CCO", "x y"]]
    text = "".join(delimiter.join(line) + end for line in lines)
    columns, rows = read(write(tmp_path, "a.csv", mark + text.encode()))
    assert columns == lines[0]
    assert rows == [Row(line, line[1]) for line in lines[1:]]


def test_quoted_delimiters_quotes_and_line_ends_are_kept(tmp_path):
    path = write(tmp_path, "a.csv", 'name,smiles\n"butan-1,4-diol",OCCCCO\n"a ""b""\nc",C\n')
    assert [row.fields for row in read(path)[1]] == [["butan-1,4-diol", "OCCCCO"], ['a "b"\nc', "C"]]
    assert read(write(tmp_path, "b.csv", b'name,smiles\r\n"a\r\nb",C\r\n'))[1] == [Row(["a\r\nb", "C"], "C")]


def test_ragged_rows_and_blank_lines_stay_rows(tmp_path):
    path = write(tmp_path, "a.csv", "a,smiles\n1,C\n2\n\n3,CC,x\n4,CCC\n\n\n")
    rows = read(path)[1]
    assert [row.fields for row in rows] == [["1", "C"], ["2", ""], ["", ""], ["3", "CC"], ["4", "CCC"]]
    assert [bool(row.error) for row in rows] == [False, True, True, True, False]
    assert rows[1].error == "the row has 1 fields, the header has 2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "no column 'smiles': name .*Its columns: a, b"),
        (b"CCO,1\nC,2\n", r"Its columns: CCO, 1 \(the first line must have the names of the columns\)"),
        (b"smiles,SMILES\nC,C\n", "2 columns 'smiles'"),
        (b'smiles,name\nC,"open\nCC,x\n', "line 3 .*cannot be split into columns"),
        ("smiles\nC\n".encode("utf-16"), "UTF-16"),
        (b"smiles\n" + b"C" * 1_000_001, "line 2 .*more than 1,000,000"),
        (b"C" * 200_000 + b"\n", "cannot be split into columns"),
    ],
)
def test_unusable_tables_are_refused_in_a_sentence(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, "a.csv", content))


def test_named_column_and_delimiter(tmp_path):
    path = write(tmp_path, "a.csv", "x;mol\n1;CCO\n")
    assert read(path, "mol", ";")[1][0].smiles == "CCO"
    with pytest.raises(InputError, match="one character"):
        read(path, "mol", ";;")
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("line", "fields"), [('CCN,"b"c', ["CCN", '"b"c']), ('"CCN"O,1', ['"CCN"O', "1"]), ("C" * 200_000 + ",1", ["", ""])]
)
def test_a_line_with_stray_quotes_costs_no_other_row(tmp_path, line, fields):
    rows = read(write(tmp_path, "a.csv", f'smiles,x\nC,1\n{line}\n"CC","2"\n'))[1]
    assert [row.fields for row in rows] == [["C", "1"], fields, ["CC", "2"]]
    assert [bool(row.error) for row in rows] == [False, True, False]
    assert "cannot be split into columns" in rows[1].error


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("smiles,IC50 [nM] (pH 7.4; 25 C; n=3)", ["smiles", "IC50 [nM] (pH 7.4; 25 C; n=3)"]),
        ("smiles;solubility, mol/L", ["smiles", "solubility, mol/L"]),
        ("smiles\tname, note", ["smiles", "name, note"]),
        ("a;b;c|SMILES", ["a;b;c", "SMILES"]),
        ("smiles", ["smiles"]),
    ],
)
def test_the_delimiter_is_the_one_that_leaves_a_column_of_smiles(tmp_path, header, columns):
    rest = "".join(f"{delimiter}1" for delimiter in (",", ";", "\t", "|"))
    assert read(write(tmp_path, "a.csv", f"{header}\nC{rest}\n"))[0] == columns


def test_the_delimiter_is_the_one_that_leaves_the_column_that_is_named(tmp_path):
    path = write(tmp_path, "a.csv", "mol,IC50 (a; b; c; d)\nC,1\n")
    assert read(path, "mol")[0] == ["mol", "IC50 (a; b; c; d)"]
    with pytest.raises(InputError, match=r"name one, or the character .*; see smiles_column, delimiter$"):
        read(path)


@pytest.mark.parametrize(("line", "delimiter"), [("sep=;", ";"), ("SEP=,\r", ","), ('"sep=\t"', "\t"), ("sep=#", "#")])
def test_excels_line_says_the_delimiter(tmp_path, line, delimiter):
    with open_table(write(tmp_path, "a.csv", f"{line}\nsmiles{delimiter}y;z\nC{delimiter}1;2\n")) as table:
        assert table.delimiter == delimiter and table.columns[0] == "smiles" and table.header == 2
        assert [row.smiles for row in table.rows] == ["C"]


def test_smi(tmp_path):
    path = write(tmp_path, "a.smi", "CCO ethanol of wine\nC\tmethane\n\nCC\n")
    columns, rows = read(path)
    assert columns == ["smiles", "name"]
    assert [row.fields for row in rows] == [["CCO", "ethanol of wine"], ["C", "methane"], ["", ""], ["CC", ""]]
    assert read(write(tmp_path, "b.smi", "SMILES Name\nCCO x\n"))[1] == [Row(["CCO", "x"], "CCO")]


def test_another_column_of_molecules_is_refused(tmp_path):
    path = write(tmp_path, "a.smi", "CCO a\n")
    assert read(path, "smiles") == read(path)
    with pytest.raises(InputError, match="has its molecules first on each line: leave --smiles-column out"):
        read(path, "name")


def test_the_extension_of_a_cxsmiles_is_no_name(tmp_path):
    _, rows = read(write(tmp_path, "a.smi", "CCO |^1:0| a radical\nCCO\t|^1:0|\nCCO |\n"))
    assert [row.fields for row in rows] == [["CCO |^1:0|", "a radical"], ["CCO\t|^1:0|", ""], ["CCO", "|"]]


@pytest.mark.parametrize("extension", ["&1:1", "$;;R$", "(0,0,;1,0,)", "r", "r,^1:0", "", "c:1,t:3", "o12:1,2", "Z:0"])
def test_extensions_of_a_cxsmiles_have_a_form(tmp_path, extension):
    (row,) = read(write(tmp_path, "a.smi", f"CCO |{extension}| x\n"))[1]
    assert row.smiles == f"CCO |{extension}|" and row.fields[1] == "x"


@pytest.mark.parametrize("name", ["|batch 7| x", "|7|", "|red, 2|", "|CAS:64-17-5|"])
def test_a_name_between_bars_is_no_extension(tmp_path, name):
    assert read(write(tmp_path, "a.smi", f"CCO {name}\n"))[1] == [Row(["CCO", name], "CCO")]
