import bz2
import gzip
import io
import lzma

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import kind_of, open_table, text
from graphormer_sepnorm.tables.formats.table import is_molecule, molecule_among, places_of_column
from graphormer_sepnorm.tables.formats.text import zstd
from tests.tables import read, write


def test_a_record_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 10)
    with pytest.raises(InputError, match=r"line 6 of .* more than 10 characters"):
        read(write(tmp_path, "a.sdf", "x\n" * 20))
    with pytest.raises(InputError, match=r"in line 4 of .* more than 10 characters"):
        read(write(tmp_path, "a.csv", 'smiles\n"CCC\nCCC\nCCC\n"\n'))
    with pytest.raises(InputError, match=r"line 2 of .* has more than 10 characters: is it a table"):
        read(write(tmp_path, "a.smi", "C\n" + "C" * 11 + "\n"))


def test_the_kind_of_a_file_is_the_suffix_before_gz():
    assert [kind_of(name) for name in ("a.SMI.gz", "a.sdf", "b.tsv.GZ", "-")] == [".smi", ".sdf", ".tsv", ""]


def test_many_records_may_be_longer_than_one_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 12)
    assert len(read(write(tmp_path, "a.sdf", "1234567\n$$$$\n" * 5))[1]) == 5
    assert len(read(write(tmp_path, "a.csv", "smiles\n" + "CCCCCCC\n" * 5))[1]) == 5


def test_lines_above_the_first_row_are_known(tmp_path):
    for name, content, header in (("a.smi", "C\n", 0), ("a.smi", "smiles\nC\n", 1), ("a.csv", "smiles\nC\n", 1)):
        with open_table(write(tmp_path, name, content)) as table:
            assert table.header == header


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_closed_standard_input_is_a_sentence(monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr("sys.stdin", stream)
    with pytest.raises(InputError, match="standard input is closed"):
        read("-")


def zstd_with_checksum(content: bytes) -> bytes:
    """As the command zstd writes it."""
    return zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1})


PACKERS = [(".gz", gzip.compress), (".bz2", bz2.compress), (".XZ", lzma.compress), (".zst", zstd_with_checksum)]


@pytest.mark.parametrize(("suffix", "pack"), PACKERS)
def test_packed_tables_are_read_and_damaged_ones_named(tmp_path, suffix, pack):
    content = pack(b"smiles\nC\nCC\n")
    assert [row.smiles for row in read(write(tmp_path, f"a.csv{suffix}", content))[1]] == ["C", "CC"]
    assert [row.smiles for row in read(write(tmp_path, f"a.smi{suffix}", pack(b"C a\n")))[1]] == ["C"]
    for damaged in (content[:-9], b"smiles\nC\n", content[:20] + b"?" + content[21:]):
        with pytest.raises(InputError, match=rf"a\.csv\{suffix} is not a whole (gzip|bzip2|xz|Zstandard) file"):
            read(write(tmp_path, f"a.csv{suffix}", damaged))
    with pytest.raises(InputError, match=rf"b\.csv is packed by \w+, so its name should end in \{suffix.lower()}"):
        read(write(tmp_path, "b.csv", content))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.feather", b"ARROW1\0\0\xff\x1b", "Feather: save"), ("a.csv", b"ARROW1\0\0\xff", "Feather"),
        ("a.json", b'[{"smiles": "C"}]', "JSON: save"), ("a.jsonl.gz", b'{"smiles": "C"}', "JSON: save"),
        ("a.csv", b"PK\x03\x04\0\0", "a zip archive or a workbook: save the table as CSV"),
        ("a.csv", b"\xd0\xcf\x11\xe0\0", "an old Excel file: save the table as CSV"),
        ("a.csv", b"PAR1\0", "Parquet: save the table as CSV"), ("a.csv", b"smiles\x00,\x01\n", "no text"),
    ],
)  # fmt: skip
def test_other_files_are_refused_by_name(tmp_path, name, content, kind):
    with pytest.raises(InputError, match=f"is {kind}") as refusal:
        read(write(tmp_path, name, content))
    assert str(refusal.value).isprintable()


def test_no_bytes_of_a_file_reach_the_terminal(tmp_path):
    with pytest.raises(InputError) as refusal:
        read(write(tmp_path, "a.csv", b"\xff\xe9," + b"x" * 10_000 + b"\nC\n"))
    assert str(refusal.value).isprintable() and len(str(refusal.value)) < 1000


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        (["id", "SMILES"], [1]), (["Canonical_SMILES", "smiles"], [1]),
        (["Canonical SMILES", "IsomericSMILES", "y"], [0]), (["y", "SMILES_parent"], [1]),
        (["Structure", "InChI"], [0]), (["InChIKey", "InChI"], [1]), (["rdkit_smiles", "y"], [0]),
        (["smiles_a", "smiles_b"], [0, 1]), (["smiles", "smiles"], [0, 1]), (["InChIKey", "molecule"], []),
        (["id", "Struktur (SMILES)"], [1]), (["SMILES (old)", "SMILES [new]"], [0, 1]), (["smiles,y"], []),
    ],
)  # fmt: skip
def test_the_column_of_molecules_is_found_by_the_names_that_people_give_it(columns, places):
    assert places_of_column(columns, None) == places and places_of_column(["smiles", "SMILES"], "SMILES") == [1]


NO_HEADER = "seems to have no header: its first line contains the molecule 'CCO'; write the names of the columns"


@pytest.mark.parametrize("name", ["plain.txt", "plain.csv", "plain.tsv"])
@pytest.mark.parametrize("column", [None, "CCO"])
def test_a_list_without_a_header_is_read_as_smi(tmp_path, name, column):
    """Also one molecule, and names with commas."""
    named = ("CCO ethanol\n\nCN(C)C N,N-dimethyl\n", "CCO\n", "CCO\r\nnone\r\nCCN\r\n")
    for content in ("CCO\nCCN\nc1ccccc1O\n", *named):
        columns, rows = read(write(tmp_path, name, content), column)
        expected = read(write(tmp_path, "same.smi", content))
        assert (columns, [row.smiles for row in rows]) == (expected[0], [row.smiles for row in expected[1]])


@pytest.mark.parametrize("column", [None, "CCO"])
@pytest.mark.parametrize("text", ["A1,CCO\nA2,CCN\n", "CCO\tx\nCCN\ty\n", '"CCO"\n"CCN"\n', "sep=;\nA1;CCO\nA2;CCN\n"])
def test_a_table_without_a_header_is_refused(tmp_path, text, column):
    with pytest.raises(InputError, match=f"a.csv {NO_HEADER}") as caught:
        read(write(tmp_path, "a.csv", text), column)
    assert ("end in .smi" in str(caught.value)) == text.startswith("CCO\t")


def test_a_name_is_no_molecule():
    chemical = ("CN", "C", "N", "CO", "NO", "Cl")
    for name in (*chemical, "smiles", "name", "Structure", "logD", "pIC50", "ID", "IC50", "Conc", ""):
        assert not is_molecule(name) and not molecule_among([name], [["CCO"]])
