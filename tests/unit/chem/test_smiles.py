import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from graphormer_sepnorm.chem import smiles
from graphormer_sepnorm.chem.properties import penalized_logp
from graphormer_sepnorm.chem.smiles import MAX_SMILES_LENGTH, read_smiles
from graphormer_sepnorm.errors import InputError

ALUMINIUM_TRIOXALATE = "O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3"
DIARYL_OXAZABOROLE = "Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1"


@pytest.mark.parametrize(
    "smiles",
    ["CCO", "C[H]", "[H][H]", "[2H]C([2H])O", "[H+]", "*CC", "C[C@]([H])(O)F", "[nH]1cccc1", "CC.[H]Cl", "F/C=C/[H]"],
)
def test_molecules_are_what_rdkit_reads_by_default(smiles):
    assert read_smiles(smiles).ToBinary() == Chem.MolFromSmiles(smiles).ToBinary()


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        (None, "must be a string, not NoneType"),
        (6, "must be a string, not int"),
        (b"CC", "must be a string, not bytes"),
        ("", "is empty"),
        (" \t\n", "is empty"),
        ("C" * (MAX_SMILES_LENGTH + 1), r"has 20,001 characters; at most 20,000"),
        ("CC\n", r"'CC\\n' has characters that are not printable ASCII"),
        ("C\x00C", r"'C\\x00C' has characters that are not printable ASCII"),
        ("C\x1b[31mC", r"'C\\x1b\[31mC' has characters that are not printable ASCII"),
        ("[O\N{MINUS SIGN}]C", r"'\[O\\u2212\]C' has characters that are not printable ASCII"),
        ("CCO ethanol", "'CCO ethanol' has a space inside"),
        ("ethanol", "'ethanol' is not a valid SMILES"),
        ("C(C", r"'C\(C' is not a valid SMILES"),
        ("C(C)(C)(C)(C)C", "impossible molecule: Explicit valence for atom # 0 C, 5"),
        ("c1cccc1", "impossible molecule: Can't kekulize mol"),
        ("[#119]", r"RDKit fails on '\[#119\]': Pre-condition Violation, Atomic number not found"),
        ("[CH128]", r"RDKit fails on '\[CH128\]'"),
        ("[Al](C)(C)(C)(C)(C)(C)C(C)(C)(C)C", "impossible molecule: Explicit valence for atom # 7 C, 5"),
    ],
)
def test_read_smiles_says_in_one_line_what_is_wrong(smiles, reason):
    with pytest.raises(InputError, match=reason) as error:
        read_smiles(smiles)
    message = str(error.value)
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 200


def test_read_smiles_refuses_too_long_ones_before_parsing(monkeypatch):
    monkeypatch.setattr(smiles.Chem, "MolFromSmiles", lambda *_, **__: pytest.fail("was parsed"))
    with pytest.raises(InputError):
        read_smiles("C" * (MAX_SMILES_LENGTH + 1))


def test_read_smiles_takes_the_longest_allowed():
    assert read_smiles("C" * MAX_SMILES_LENGTH).GetNumAtoms() == MAX_SMILES_LENGTH


def test_read_smiles_ignores_spaces_around():
    assert read_smiles("  CCO ").GetNumAtoms() == 3


def test_read_smiles_reads_strictly_where_it_can():
    mol = read_smiles("[H]OC([2H])C1=CC=CC=C1")
    assert Chem.MolToSmiles(mol) == Chem.CanonSmiles("[2H]C(O)c1ccccc1")


@pytest.mark.parametrize(("smiles", "atoms", "rings"), [(ALUMINIUM_TRIOXALATE, 19, 3), (DIARYL_OXAZABOROLE, 19, 3)])
def test_read_smiles_forgives_the_valence_of_metals(smiles, atoms, rings):
    mol = read_smiles(smiles)
    assert mol.GetNumAtoms() == atoms
    assert mol.GetRingInfo().NumRings() == rings
    assert all(atom.GetTotalNumHs() >= 0 for atom in mol.GetAtoms())


def test_lenient_reading_finds_aromatic_rings():
    assert sum(atom.GetIsAromatic() for atom in read_smiles(DIARYL_OXAZABOROLE).GetAtoms()) == 12


def test_rdkit_is_silent_inside_our_calls_only(capfd):
    with pytest.raises(InputError):
        read_smiles("C1CC")
    penalized_logp("CCO")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1CC")
    assert "unclosed ring" in capfd.readouterr().err


@given(st.text(alphabet="CNOcn()[]=#123+-@HAlB .%/\\*>", max_size=30) | st.text(max_size=10))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_molecule_or_an_input_error(text):
    try:
        mol = read_smiles(text)
    except InputError:
        return
    assert mol.GetNumAtoms() > 0
