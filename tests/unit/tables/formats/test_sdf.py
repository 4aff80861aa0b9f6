import os

import pytest
from rdkit import Chem

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.formats.table import Row
from tests.tables import read, write


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
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    path = write(tmp_path, "a.sdf", f"{block}>  <parent>\nCCN\n\n$$$$\n")
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
    assert rows[1].fields[1].encode(errors="surrogateescape") == b"caf\xe9"
    assert [bool(row.error) for row in rows] == [False, False, not rows[2].smiles, False]


@pytest.mark.parametrize("failure", [RuntimeError("Invariant\n\tbroken"), ValueError("x"), TypeError(), MemoryError()])
def test_a_record_that_rdkit_fails_on_costs_no_other(tmp_path, monkeypatch, failure):
    read_block = Chem.MolFromMolBlock

    def failing(block: str, **options):
        if "unlucky" in block:
            raise failure
        return read_block(block, **options)

    monkeypatch.setattr(Chem, "MolFromMolBlock", failing)
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    _, rows = read(write(tmp_path, "a.sdf", "$$$$\n".join([block, "unlucky" + block, block])))
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


def test_names_of_data_items_may_have_angle_brackets(tmp_path):
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    items = ">  <Inhibition (>10 uM)>\n1\n\n> 25 <Inhibition (>30 uM)> (7)\n2\n\n> <a<b>c>\n3\n\n"
    columns, rows = read(write(tmp_path, "a.sdf", f"{block}{items}$$$$\n"))
    assert columns == ["smiles", "name", "Inhibition (>10 uM)", "Inhibition (>30 uM)", "a<b>c"]
    assert rows == [Row(["CCO", "", "1", "2", "3"], "CCO")]


@pytest.mark.parametrize("title", [">99% pure", "> <x>"])
def test_a_title_may_begin_like_a_data_item(tmp_path, title):
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    columns, rows = read(write(tmp_path, "a.sdf", f"{title}{block}>  <y>\n1\n\n$$$$\n"))
    assert columns == ["smiles", "name", "y"] and rows == [Row(["CCO", title, "1"], "CCO")]


def test_a_ring_of_many_atoms_is_refused_before_rdkit_looks_for_it(tmp_path):
    atoms = 20_000
    lines = ["", "", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"]
    lines += [f"M  V30 COUNTS {atoms} {atoms} 0 0 0", "M  V30 BEGIN ATOM"]
    lines += [f"M  V30 {n} C 0 0 0 0" for n in range(1, atoms + 1)] + ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    lines += [f"M  V30 {n} 1 {n} {n % atoms + 1}" for n in range(1, atoms + 1)]
    lines += ["M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""]
    (row,) = read(write(tmp_path, "a.sdf", "\n".join(lines)))[1]
    assert row.smiles == "" and row.error == "The molecule has 20,000 atoms; at most 1,000 are read."
