import numpy as np
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem import smiles
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import molecule_key, penalized_logp
from graphormer_sepnorm.chem.smiles import MAX_SMILES_LENGTH, read_smiles, smiles_of
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.splits import MoleculeStructure, read_structures


@pytest.mark.parametrize(
    "smiles",
    ["CCO", "C[H]", "[H][H]", "[2H]C([2H])O", "[H+]", "C[C@]([H])(O)F", "[nH]1cccc1", "CC.[H]Cl", "F/C=C/[H]"],
)
def test_molecules_are_what_rdkit_reads_by_default(smiles):
    assert read_smiles(smiles).ToBinary() == Chem.MolFromSmiles(smiles).ToBinary()


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        (None, r"^The SMILES is missing\.$"),
        (6, "must be a string, not int"),
        ("C" * (MAX_SMILES_LENGTH + 1), r"has 20,001 characters; at most 20,000"),
        ("CC\n", r"'CC\\n' has characters that are not printable ASCII"),
        ("[O\N{MINUS SIGN}]C", r"'\[O\\u2212\]C' has characters that are not printable ASCII"),
        ("C C", "'C C' has a space inside"),
        ("CC>>CO", "'CC>>CO' is a reaction: give the SMILES of one molecule"),
        ("ethanol", "'ethanol' is not a valid SMILES: names are not looked up, write the SMILES of the molecule"),
        ("V69", "'V69' is not a valid SMILES: ids are not looked up, write the SMILES of the molecule"),
        ("0.35025", r"'0.35025' is not a valid SMILES: it looks like a number\.$"),
        ("c1cccc", r"'c1cccc' is not a valid SMILES: ring 1 is not closed\.$"),
        ("C(C", r"'C\(C' is not a valid SMILES: a parenthesis is not closed\.$"),
        ("CX", "'X' is no atom outside square brackets"),
        ("50-78-2", "it is a CAS number"),
        ("BSYNRYMUTXBXSQ-UHFFFAOYSA-N", "it is an InChIKey"),
        ("CCO, ethanol", "'CCO, ethanol' is not a valid SMILES: leave out the comma and what is behind it"),
        ("C(C)(C)(C)(C)C", r"impossible molecule: atom 1 \(C\) has a valence of 5, which is too high\.$"),
        ("c1cccc1", r"impossible molecule: the aromatic ring with atom 1 has no Kekule structure; .* in \[nH\]\.$"),
        ("CCc", "impossible molecule: atom 3 is written as aromatic, but is in no ring"),
        ("[#119]", r"RDKit fails on '\[#119\]': Pre-condition Violation, Atomic number not found"),
    ],
)
def test_read_smiles_explains_errors_in_one_line(smiles, reason):
    with pytest.raises(InputError, match=reason) as error:
        read_smiles(smiles)
    message = str(error.value)
    assert message.endswith(".") and message.isprintable() and len(message) < 200


CLOSURES = [[f"%({22 * first + second})" for second in range(22)] for first in range(22)]
TANGLED = ".".join("[U]" + "".join(part) for part in (*CLOSURES, *zip(*CLOSURES, strict=True)))


@pytest.mark.parametrize(
    ("text", "counted"),
    [("C" * 1001, "1,001 atoms; at most 1,000 are read"), ("C1" + "C" * 19_900 + "1", "19,901 atoms"),
     ("[Na]" * 1001, "1,001 atoms"), (TANGLED, r"441 rings; at most 100 are read of 44 atoms\.")],
)  # fmt: skip
def test_atoms_and_rings_are_counted_before_rdkit_looks_for_rings(text, counted, monkeypatch):
    """It needs gigabytes for a ring of 20,000 atoms, and half a minute for two halves of 22, each bonded to each."""
    monkeypatch.setattr(smiles, "_read_strictly", lambda text: pytest.fail("rings are looked for"))
    with pytest.raises(InputError, match=f"The molecule has {counted}"):
        read_smiles(text)


def test_hydrogens_that_stay_atoms_are_counted_and_others_are_not():
    assert read_smiles("C" * 999 + "C[H]").GetNumAtoms() == 1000
    with pytest.raises(InputError, match="1,001 atoms"):
        read_smiles("C" * 1000 + "[2H]")


@pytest.mark.parametrize(
    "name", ["ethanol", "64-17-5", "spirit of wine", "caf\u00e9", "\ud800", "N-methyl", "  ", "\x1f", "\x1c ethane"]
)
def test_a_name_behind_a_smiles_is_ignored(name):
    for space in (" ", "\t"):
        assert read_smiles(f"CCO{space}{name}").ToBinary() == read_smiles("CCO").ToBinary()


def test_a_cxsmiles_extension_is_read_by_rdkit():
    radical = read_smiles("CCO |^1:0| a name")
    assert [atom.GetNumRadicalElectrons() for atom in radical.GetAtoms()] == [1, 0, 0]
    assert Chem.MolToSmiles(read_smiles("[NH3][Fe] |C:0.0|")) == Chem.MolToSmiles(read_smiles("[NH3]->[Fe]"))
    for text in ("CCO |$a;b;c$|", "CC |SgD:1:a:b::|"):  # labels of atoms and notes
        assert read_smiles(text).GetNumAtoms() > 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("InChI=1S/nonsense", "'InChI=1S/nonsense' is not a valid InChI."),
        ("\n\n\nM  END", "the record has no readable structure"),
        ("M  END" + " " * 1_000_000, "The molfile has 1,000,006 characters"),
    ],
)
def test_an_inchi_or_a_molfile_that_cannot_be_read_is_explained(text, sentence):
    with pytest.raises(InputError, match=sentence):
        read_smiles(text)


@pytest.mark.parametrize(
    "smiles", ["O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3", "Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1"]
)
def test_read_smiles_forgives_the_valence_of_metals_and_boron(smiles):
    mol = read_smiles(smiles)
    assert (mol.GetNumAtoms(), mol.GetRingInfo().NumRings()) == (19, 3)
    assert all(atom.GetTotalNumHs() >= 0 for atom in mol.GetAtoms())


@pytest.mark.slow
def test_rdkit_is_silent_inside_our_calls_only(capfd):
    with pytest.raises(InputError):
        read_smiles("C1CC")
    penalized_logp("CCO")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1CC")
    assert "unclosed ring" in capfd.readouterr().err


RACEMATES = [
    "C[C@H]1CCCC[C@H]1O |&1:1,6|",
    "C[C@H]1CCCC[C@@H]1O |o1:1,6|",
    "C[C@H](F)[C@H](O)[C@@H](Cl)Br |&1:1,3,o1:5|",
    "C[C@H](F)[C@H](O)[C@@H](Cl)[C@@H](Br)I |&1:1,3,o1:5,7|",
    "C[C@H](F)[C@H](F)Cl |&1:1,3|",
]


@pytest.mark.parametrize("smiles", ["C[C@H](N)C(=O)O |&1:1|", "C[C@@H](N)C(=O)O |o1:1|", "C[C@@H](N)C(=O)O |&7:1,r|"])
def test_a_centre_that_is_racemic_by_itself_is_one_without_stereo(smiles):
    assert smiles_of(read_smiles(smiles)) == "CC(N)C(=O)O"
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
    found = read_structures("mol", [*texts, smiles_of(read_smiles(smiles)), smiles_of(drawn)])
    keys = {each.key for each in found if isinstance(each, MoleculeStructure)}
    assert len(texts) > 5 and len(keys) == len({sorted_rows(text) for text in texts}) == 1
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
        ("CC* |$;;Q_e$|", "R group"), ("CCCC |LN:1:1.3|", "variable part"), ("*OCCO*", "polymer"),
        ("[1*]CC", "R group"), ("[#0]CC", "R group"), ("*CC* |$star_e;;;star_e$|", "R group"),
    ],
)  # fmt: skip
def test_a_structure_that_is_no_single_molecule_is_refused(smiles, reason, preparation):
    with pytest.raises(InputError, match=reason):
        FEATURIZERS[f"mol{preparation}"].read(smiles)
    with pytest.raises(InputError, match=reason):
        read_smiles(Chem.MolFromSmiles(smiles))
    with pytest.raises(InputError, match="R group"):
        read_smiles(MOLFILE)


MOLFILE = """
  R group

  2  1  0  0  0  0            999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.0000    0.0000    0.0000 R#  0  0
  1  2  1  0
M  RGP  1   2   1
M  END
"""
