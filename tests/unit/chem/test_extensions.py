"""Racemates, relative stereo, polymers and R groups, by hand and against every way of writing them."""

import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import molecule_key
from graphormer_sepnorm.chem.smiles import as_text, read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.splits import MoleculeStructure, read_structures

RACEMATES = [
    "C[C@H]1CCCC[C@H]1O |&1:1,6|",
    "C[C@H]1CCCC[C@@H]1O |o1:1,6|",
    "C[C@H](F)[C@H](O)[C@@H](Cl)Br |&1:1,3,o1:5|",
    "C[C@H](F)[C@H](O)[C@@H](Cl)[C@@H](Br)I |&1:1,3,o1:5,7|",
    "*[C@H](F)[C@H](F)Cl |&1:1,3|",
]


@pytest.mark.parametrize("smiles", ["C[C@H](N)C(=O)O |&1:1|", "C[C@@H](N)C(=O)O |o1:1|", "C[C@@H](N)C(=O)O |&7:1,r|"])
def test_a_centre_that_is_racemic_by_itself_is_one_without_stereo(smiles):
    assert as_text(read_smiles(smiles)) == "CC(N)C(=O)O"
    assert molecule_key(smiles) == molecule_key("CC(N)C(=O)O") != molecule_key(smiles.split()[0])


@pytest.mark.parametrize("smiles", RACEMATES)
def test_all_drawings_of_a_racemate_are_one_molecule_and_its_enantiomers_are_others(smiles):
    drawn = Chem.MolFromSmiles(smiles)
    as_it_is = Chem.SmilesWriteParams()
    as_it_is.canonical = False
    rng, texts = np.random.default_rng(0), {smiles}
    for _ in range(10):
        other = Chem.RenumberAtoms(drawn, rng.permutation(drawn.GetNumAtoms()).tolist())
        for group in other.GetStereoGroups():
            if rng.random() < 0.5:
                for atom in group.GetAtoms():
                    other.GetAtomWithIdx(atom.GetIdx()).InvertChirality()
        texts.add(Chem.MolToCXSmiles(other, as_it_is, Chem.CXSmilesFields.CX_ENHANCEDSTEREO))
    found = read_structures("mol", [*texts, as_text(read_smiles(smiles)), as_text(drawn)])
    keys = {each.key for each in found if isinstance(each, MoleculeStructure)}
    assert len(texts) > 5
    graphs = {sorted_rows(text) for text in texts}
    assert len(keys) == len(graphs) == 1
    enantiomers = {smiles.split()[0], smiles.split()[0].replace("@@", "!").replace("@", "@@").replace("!", "@")}
    assert keys.isdisjoint({molecule_key(text) for text in enantiomers})
    assert len({each.family for each in read_structures("mol", [smiles, *enantiomers])}) == 1


def sorted_rows(smiles: str) -> bytes:
    """The features of the atoms of a molecule in an order that does not depend on how it is written."""
    rows = FEATURIZERS["mol"].graph(smiles).x
    return rows[np.lexsort(rows.T)].tobytes()


def test_the_order_of_the_atoms_stays():
    mol = read_smiles("O[C@@H]1CCCC[C@@H]1C |&1:1,6|")
    assert [atom.GetSymbol() for atom in mol.GetAtoms()] == [*"OCCCCCCC"]


def test_a_racemate_stays_one_when_its_salt_is_removed():
    (salt, free) = read_structures("mol-standardized", [f"{RACEMATES[0].split()[0]}.Cl |&1:1,6|", RACEMATES[0]])
    assert salt.key == free.key


@pytest.mark.parametrize("preparation", ["", "-standardized"])
@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("CCO |Sg:n:1,2:5:ht|", "polymer"), ("*CC* |$star_e;;;star_e$,Sg:n:1,2::ht|", "polymer"),
        ("*CC* |$_AP1;;;_AP2$|", "attachment point"), ("CC* |$;;_R1$|", "R group"), ("CC* |$;;R1$|", "R group"),
        ("CC* |$;;Q_e$|", "generic atom"), ("CCCC |LN:1:1.3|", "variable part"),
    ],
)  # fmt: skip
def test_a_structure_that_is_no_single_molecule_is_refused(smiles, reason, preparation):
    with pytest.raises(InputError, match=reason):
        FEATURIZERS[f"mol{preparation}"].read(smiles)
    with pytest.raises(InputError, match=reason):
        read_smiles(Chem.MolFromSmiles(smiles))
    with pytest.raises(InputError, match="R group"):
        read_smiles(MOLFILE)


def test_wildcards_labels_of_other_atoms_and_notes_are_read():
    for text in ("*CC*", "*CC* |$star_e;;;star_e$|", "[1*]CC", "CCO |$a;b;c$|", "CC |SgD:1:a:b::|"):
        assert read_smiles(text).GetNumAtoms() > 1


MOLFILE = """
  R group

  2  1  0  0  0  0            999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.0000    0.0000    0.0000 R#  0  0
  1  2  1  0
M  RGP  1   2   1
M  END
"""
