import gzip
import io
import os

import pytest
from rdkit import Chem

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables import formats
from graphormer_sepnorm.tables.formats import (
    Row,
    free_name,
    kind_of,
    not_one_column,
    open_table,
    table_of_smiles,
    with_free_names,
)


def read(path, *options):
    with open_table(path, *options) as table:
        return table.columns, list(table.rows)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


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


def test_ragged_rows_and_blank_lines_stay_rows(tmp_path):
    path = write(tmp_path, "a.csv", "a,smiles\n1,C\n2\n\n3,CC,x\n4,CCC\n\n\n")
    rows = read(path)[1]
    assert [row.fields for row in rows] == [["1", "C"], ["2", ""], ["", ""], ["3", "CC"], ["4", "CCC"]]
    assert [bool(row.error) for row in rows] == [False, True, True, True, False]
    assert rows[1].error == "the row has 1 fields, the header has 2"


def test_bytes_that_are_not_utf8_pass_through(tmp_path):
    row = read(write(tmp_path, "a.csv", b"smiles,name\nCCO,caf\xe9\n"))[1][0]
    assert row.fields[1].encode(errors="surrogateescape") == b"caf\xe9"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "no column 'smiles' .its columns: a, b."),
        (b"smiles,SMILES\nC,C\n", "2 columns 'smiles'"),
        (b'smiles,name\nC,"open\nCC,x\n', "line 3 .*cannot be split into columns"),
        ("smiles\nC\n".encode("utf-16"), "UTF-16"),
        (b"smiles\n" + b"C" * 1_000_001, "line 2 .*more than 1,000,000"),
    ],
)
def test_unusable_tables_are_refused_in_a_sentence(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(write(tmp_path, "a.csv", content))


def test_a_table_of_a_header_alone_has_no_rows(tmp_path):
    assert read(write(tmp_path, "a.csv", "smiles,x\n")) == (["smiles", "x"], [])


def test_named_column_and_delimiter(tmp_path):
    path = write(tmp_path, "a.csv", "x;mol\n1;CCO\n")
    assert read(path, "mol", ";")[1][0].smiles == "CCO"
    with pytest.raises(InputError, match="one character"):
        read(path, "mol", ";;")
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "missing.csv")


def test_gzip(tmp_path):
    path = write(tmp_path, "a.csv.gz", gzip.compress(b"smiles\nC\n" * 1))
    assert [row.smiles for row in read(path)[1]] == ["C"]
    write(tmp_path, "a.csv.gz", path.read_bytes()[:-9])
    with pytest.raises(InputError, match="not a whole gzip file"):
        read(path)
    with pytest.raises(InputError, match="not a whole gzip file"):
        read(write(tmp_path, "b.csv.gz", "smiles\nC\n"))


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"smiles\n")
        for _ in range(100):
            file.write(b"C" * 1_000_000)
    with pytest.raises(InputError, match="more than 1,000,000 characters"):
        read(path)


def test_smi(tmp_path):
    path = write(tmp_path, "a.smi", "CCO ethanol of wine\nC\tmethane\n\nCC\n")
    columns, rows = read(path)
    assert columns == ["smiles", "name"]
    assert [row.fields for row in rows] == [["CCO", "ethanol of wine"], ["C", "methane"], ["", ""], ["CC", ""]]
    assert read(write(tmp_path, "b.smi", "SMILES Name\nCCO x\n"))[1] == [Row(["CCO", "x"], "CCO")]


def test_sdf(tmp_path):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("C[C@H](N)O", "c1ccccc1")]
    record = ["{}>  <logp>\n1.5\n\n>  <note>\ntwo\nlines\n\n$$$$\n", "no molfile\n>  <smiles>\nx\n\n$$$$\n", "{}$$$$\n"]
    text = record[0].format(blocks[0]) + record[1] + record[2].format(blocks[1])
    columns, rows = read(write(tmp_path, "a.sdf", text))
    assert columns == ["smiles_of_molfile", "name", "logp", "note", "smiles"]
    assert rows[0].fields == ["C[C@H](N)O", "", "1.5", "two\nlines", ""]
    assert rows[1].error == "the record has no readable structure" and rows[1].fields[-1] == "x"
    assert rows[2].smiles == "c1ccccc1"


def test_an_sdf_with_bytes_that_are_not_utf8_loses_no_record(tmp_path):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("CCO", "CCN", "CCC")]
    title = b"caf\xe9" + blocks[1].encode()
    atom = blocks[2].replace(" C  ", " \u00e9  ", 1).encode("latin-1")
    content = b"$$$$\n".join([blocks[0].encode(), title, atom, blocks[0].encode()])
    _, rows = read(write(tmp_path, "a.sdf", content))
    assert [row.smiles for row in (rows[0], rows[1], rows[3])] == ["CCO", "CCN", "CCO"]
    assert rows[1].fields[1].encode(errors="surrogateescape") == b"caf\xe9"
    assert [bool(row.error) for row in rows] == [False, False, not rows[2].smiles, False]


@pytest.mark.parametrize("failure", [RuntimeError("Invariant\n\tbroken"), ValueError("x"), TypeError(), MemoryError()])
def test_a_record_that_rdkit_fails_on_costs_no_other(tmp_path, monkeypatch, failure):
    read_block = Chem.MolFromMolBlock

    def failing(block: str, **options):
        if "unlucky" in block:
            raise failure
        return read_block(block, **options)

    monkeypatch.setattr(formats.Chem, "MolFromMolBlock", failing)
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    _, rows = read(write(tmp_path, "a.sdf", "$$$$\n".join([block, "unlucky" + block, block])))
    assert [row.smiles for row in rows] == ["CCO", "", "CCO"]
    assert [bool(row.error) for row in rows] == [False, True, False] and "RDKit fails" in rows[1].error


def test_a_record_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_RECORD", 10)
    with pytest.raises(InputError, match=r"line 6 of .* more than 10 characters"):
        read(write(tmp_path, "a.sdf", "x\n" * 20))
    with pytest.raises(InputError, match=r"in line 4 of .* more than 10 characters"):
        read(write(tmp_path, "a.csv", 'smiles\n"CCC\nCCC\nCCC\n"\n'))


@pytest.mark.parametrize(
    ("line", "fields"),
    [('CCN,"b"c', ["CCN", '"b"c']), ('"CCN"O,1', ['"CCN"O', "1"]), ("C" * 200_000 + ",1", ["", ""])],
)
def test_a_line_with_stray_quotes_costs_no_other_row(tmp_path, line, fields):
    rows = read(write(tmp_path, "a.csv", f'smiles,x\nC,1\n{line}\n"CC","2"\n'))[1]
    assert [row.fields for row in rows] == [["C", "1"], fields, ["CC", "2"]]
    assert [bool(row.error) for row in rows] == [False, True, False]
    assert "cannot be split into columns" in rows[1].error


def test_an_sdf_that_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.sdf")
    with open(os.open(tmp_path / "a.sdf", os.O_RDWR)), pytest.raises(InputError, match="can be read only once"):
        read(tmp_path / "a.sdf")


def test_chunks_are_lists_of_rows_in_order(tmp_path):
    with open_table(write(tmp_path, "a.csv", "smiles\n" + "C\n" * 5)) as table:
        assert [len(chunk) for chunk in table.chunks(2)] == [2, 2, 1]


def test_free_name():
    assert free_name("a", ["b"], "_x") == "a"
    assert free_name("a", ["a", "a_x"], "_x") == "a_x_x"
    assert with_free_names(["a", "b"], ["a"]) == ["a_predicted", "b"]


def test_the_kind_of_a_file_is_the_suffix_before_gz():
    assert [kind_of(name) for name in ("a.SMI.gz", "a.sdf", "b.tsv.GZ", "-")] == [".smi", ".sdf", ".tsv", ""]


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_closed_standard_input_is_a_sentence(monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stdin", stream)
    with pytest.raises(InputError, match="standard input is closed"):
        read("-")


def test_line_ends_inside_quotes_stay_as_they_are(tmp_path):
    rows = read(write(tmp_path, "a.csv", b'name,smiles\r\n"a\r\nb",C\r\n'))[1]
    assert rows == [Row(["a\r\nb", "C"], "C")]


def test_a_line_that_is_too_long_is_refused_in_every_kind_of_table(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_RECORD", 10)
    with pytest.raises(InputError, match=r"line 2 of .* has more than 10 characters: is it a table"):
        read(write(tmp_path, "a.smi", "C\n" + "C" * 11 + "\n"))


def test_many_records_may_be_longer_than_one_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_RECORD", 12)
    assert len(read(write(tmp_path, "a.sdf", "1234567\n$$$$\n" * 5))[1]) == 5
    assert len(read(write(tmp_path, "a.csv", "smiles\n" + "CCCCCCC\n" * 5))[1]) == 5


def test_an_impossible_molecule_of_an_sdf_keeps_its_smiles(tmp_path):
    """So that the reason why it cannot be used is that of its SMILES."""
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC(C)(C)(C)C", sanitize=False), kekulize=False)
    assert [row.smiles for row in read(write(tmp_path, "a.sdf", block + "$$$$\n"))[1]] == ["CC(C)(C)(C)C"]


def test_a_workbook_is_a_table_like_a_csv(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "SMILES", "y"], [1, "CCO", 0.5], [2, "CC"], [], [3, "C", 1, 2], []):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    columns, rows = read(tmp_path / "a.xlsx")
    assert columns == ["id", "SMILES", "y"]
    assert [row.fields for row in rows] == [["1", "CCO", "0.5"], ["2", "CC", ""], ["", "", ""], ["3", "C", "1"]]
    assert [row.error for row in rows] == ["", "", "the line is empty", "the row has 4 fields, the header has 3"]
    packed = write(tmp_path, "b.xlsx.gz", gzip.compress((tmp_path / "a.xlsx").read_bytes()))
    assert read(packed) == (columns, rows)
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "c.xlsx")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04\0\0", "a zip archive or a workbook"),
        (b"\xd0\xcf\x11\xe0\0", "an old Excel file"),
        (b"PAR1\0", "Parquet"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, content, kind):
    with pytest.raises(InputError, match=f"is {kind}: save the table as CSV"):
        read(write(tmp_path, "a.csv", content))


def test_smiles_are_a_table_of_one_column():
    table = table_of_smiles(["C", "CC"])
    assert table.columns == ["smiles"] and list(table.rows) == [Row(["C"], "C"), Row(["CC"], "CC")]


def test_a_csv_knows_its_delimiter(tmp_path):
    with open_table(write(tmp_path, "a.csv", "smiles;y\nC;1\n")) as table:
        assert table.delimiter == ";"


def test_of_many_columns_some_are_shown():
    columns = [f"d{number}" for number in range(1000)]
    assert not_one_column("a.csv", columns, "y", 0).endswith("d18, d19, ...)")
    assert not_one_column("a.csv", ["smiles", "y", "y"], "y", 2) == (
        "a.csv has 2 columns 'y' (its columns: smiles, y, y)"
    )
