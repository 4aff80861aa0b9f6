import os

import pytest
from rdkit import Chem

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import Row
from tests.tables import read, write

ETHANOL = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))


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
        (b"Report,,\n\nid;SMILES\n1;C\n", "line 3 .* looks like its header: delete the lines above it"),
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


@pytest.mark.parametrize(
    ("line", "fields"), [('CCN,"b"c', ["CCN", '"b"c']), ('"CCN"O,1', ['"CCN"O', "1"]), ("C" * 200_000 + ",1", ["", ""])]
)
def test_a_line_with_stray_quotes_costs_no_other_row(tmp_path, line, fields):
    rows = read(write(tmp_path, "a.csv", f'smiles,x\nC,1\n{line}\n"CC","2"\n'))[1]
    assert [row.fields for row in rows] == [["C", "1"], fields, ["CC", "2"]]
    assert [bool(row.error) for row in rows] == [False, True, False]
    assert "cannot be split into columns" in rows[1].error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("smiles,IC50 [nM] (pH 7.4; 25 C; n=3)", ["smiles", "IC50 [nM] (pH 7.4; 25 C; n=3)"]),
        ("smiles;solubility, mol/L", ["smiles", "solubility, mol/L"]), ("smiles", ["smiles"]),
        ("smiles\tname, note", ["smiles", "name, note"]), ("a;b;c|SMILES", ["a;b;c", "SMILES"]),
    ],
)  # fmt: skip
def test_the_delimiter_is_the_one_that_leaves_a_column_of_smiles(tmp_path, header, columns):
    rest = "".join(f"{delimiter}1" for delimiter in (",", ";", "\t", "|"))
    assert read(write(tmp_path, "a.csv", f"{header}\nC{rest}\n"))[0] == columns


def test_the_delimiter_is_the_one_that_leaves_the_column_that_is_named(tmp_path):
    path = write(tmp_path, "a.csv", "mol,IC50 (a; b; c; d)\nC,1\n")
    assert read(path, "mol")[0] == read(path, "mol", ",")[0] == ["mol", "IC50 (a; b; c; d)"]
    with pytest.raises(InputError, match="one character"):
        read(path, "mol", ";;")
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
    assert read(path, "smiles") == (columns, rows)
    with pytest.raises(InputError, match="has its molecules first on each line: leave --smiles-column out"):
        read(path, "name")


def test_the_extension_of_a_cxsmiles_is_no_name_and_a_name_between_bars_no_extension(tmp_path):
    known = ["^1:0", "&1:1", "$;;R$", "(0,0,;1,0,)", "r", "r,^1:0", "", "c:1,t:3", "o12:1,2", "Z:0"]
    names = ["|batch 7| x", "|7|", "|red, 2|", "|CAS:64-17-5|", "|"]
    lines = [*(f"CCO |{each}| x" for each in known), "CCO\t|^1:0|", *(f"CCO {name}" for name in names)]
    _, rows = read(write(tmp_path, "a.smi", "\n".join(lines)))
    extended = [*([f"CCO |{each}|", "x"] for each in known), ["CCO\t|^1:0|", ""]]
    assert [row.fields for row in rows[: len(extended)]] == extended
    assert rows[len(extended) :] == [Row(["CCO", name], "CCO") for name in names]


def test_sdf(tmp_path):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("C[C@H](N)O", "c1ccccc1")]
    record = ["{}>  <logp>\n1.5\n\n>  <note>\ntwo\nlines\n\n$$$$\n", "no molfile\n>  <smiles>\nx\n\n$$$$\n", "{}$$$$\n"]
    text = record[0].format(blocks[0]) + record[1] + record[2].format(blocks[1])
    columns, rows = read(write(tmp_path, "a.sdf", text))
    assert columns == ["smiles_of_molfile", "name", "logp", "note", "smiles"]
    assert rows[0].fields == ["C[C@H](N)O", "", "1.5", "two\nlines", ""]
    assert rows[1].error == "the record has no readable structure" and rows[1].fields[-1] == "x"
    assert rows[2].smiles == "c1ccccc1"


def test_a_data_item_is_the_molecule_if_it_is_named(tmp_path):
    path = write(tmp_path, "a.sdf", f"{ETHANOL}>  <parent>\nCCN\n\n$$$$\n")
    for column, smiles in (((), "CCO"), (("parent",), "CCN"), (("smiles",), "CCO")):
        assert [row.smiles for row in read(path, *column)[1]] == [smiles]
    with pytest.raises(InputError, match="no column 'parents'"):
        read(path, "parents")


def test_an_sdf_with_bytes_that_are_not_utf8_loses_no_record(tmp_path):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("CCO", "CCN", "CCC")]
    title = b"caf\xe9" + blocks[1].encode()
    atom = blocks[2].replace(" C  ", " \u00e9  ", 1).encode("latin-1")
    content = b"$$$$\n".join([blocks[0].encode(), title, atom, blocks[0].encode()])
    _, rows = read(write(tmp_path, "a.sdf", content))
    assert [row.smiles for row in (rows[0], rows[1], rows[3])] == ["CCO", "CCN", "CCO"]
    assert rows[1].fields[1] == "caf\u00e9"
    assert [bool(row.error) for row in rows] == [False, False, not rows[2].smiles, False]


@pytest.mark.parametrize("failure", [RuntimeError("Invariant\n\tbroken"), ValueError("x"), TypeError(), MemoryError()])
def test_a_record_that_rdkit_fails_on_costs_no_other(tmp_path, monkeypatch, failure):
    read_block = Chem.MolFromMolBlock

    def failing(block: str, **options):
        if "unlucky" in block:
            raise failure
        return read_block(block, **options)

    monkeypatch.setattr(Chem, "MolFromMolBlock", failing)
    _, rows = read(write(tmp_path, "a.sdf", "$$$$\n".join([ETHANOL, "unlucky" + ETHANOL, ETHANOL])))
    assert [row.smiles for row in rows] == ["CCO", "", "CCO"]
    assert [bool(row.error) for row in rows] == [False, True, False] and "RDKit fails" in rows[1].error


def test_an_sdf_that_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.sdf")
    with open(os.open(tmp_path / "a.sdf", os.O_RDWR)), pytest.raises(InputError, match="can be read only once"):
        read(tmp_path / "a.sdf")


def test_an_impossible_molecule_of_an_sdf_keeps_its_smiles(tmp_path):
    """So that the reason why it cannot be used is that of its SMILES."""
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC(C)(C)(C)C", sanitize=False), kekulize=False)
    assert [row.smiles for row in read(write(tmp_path, "a.sdf", block + "$$$$\n"))[1]] == ["CC(C)(C)(C)C"]


@pytest.mark.parametrize("title", ["", ">99% pure", "> <x>"])
def test_names_of_data_items_may_have_angle_brackets_and_a_title_may_begin_like_one(tmp_path, title):
    items = ">  <Inhibition (>10 uM)>\n1\n\n> 25 <Inhibition (>30 uM)> (7)\n2\n\n> <a<b>c>\n3\n\n"
    columns, rows = read(write(tmp_path, "a.sdf", f"{title}{ETHANOL}{items}$$$$\n"))
    assert columns == ["smiles", "name", "Inhibition (>10 uM)", "Inhibition (>30 uM)", "a<b>c"]
    assert rows == [Row(["CCO", title, "1", "2", "3"], "CCO")]


def test_a_ring_of_many_atoms_is_refused_before_rdkit_looks_for_it(tmp_path):
    atoms = 20_000
    lines = ["", "", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"]
    lines += [f"M  V30 COUNTS {atoms} {atoms} 0 0 0", "M  V30 BEGIN ATOM"]
    lines += [f"M  V30 {n} C 0 0 0 0" for n in range(1, atoms + 1)] + ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    lines += [f"M  V30 {n} 1 {n} {n % atoms + 1}" for n in range(1, atoms + 1)]
    lines += ["M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""]
    (row,) = read(write(tmp_path, "a.sdf", "\n".join(lines)))[1]
    assert row.smiles == "" and row.error == "The molecule has 20,000 atoms; at most 1,000 are read."
