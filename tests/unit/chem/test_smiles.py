import pytest
from hypothesis import example, given
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
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 200


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("C" * 1001, "1,001"),
        ("C1" + "C" * 19_900 + "1", "19,901"),
        ("[Na]" * 1001, "1,001"),
    ],
)
def test_too_many_atoms_are_counted_before_rdkit_looks_for_rings(text, atoms, monkeypatch):
    """For a ring of 20,000 atoms, RDKit needs gigabytes."""
    monkeypatch.setattr(smiles, "_read_strictly", lambda text: pytest.fail("rings are looked for"))
    with pytest.raises(InputError, match=f"The molecule has {atoms} atoms; at most 1,000 are read"):
        read_smiles(text)


def test_rings_are_counted_before_rdkit_looks_for_them(monkeypatch):
    """For 44 atoms, each of one half bonded to each of the other, RDKit takes half a minute."""
    closures = [[f"%({22 * first + second})" for second in range(22)] for first in range(22)]
    text = ".".join("[U]" + "".join(part) for part in (*closures, *zip(*closures, strict=True)))
    monkeypatch.setattr(smiles, "_read_strictly", lambda text: pytest.fail("rings are looked for"))
    with pytest.raises(InputError, match=r"The molecule has 441 rings; at most 100 are read of 44 atoms\."):
        read_smiles(text)


def test_hydrogens_that_stay_atoms_are_counted_and_others_are_not():
    assert read_smiles("C" * 999 + "C[H]").GetNumAtoms() == 1000
    with pytest.raises(InputError, match="1,001 atoms"):
        read_smiles("C" * 1000 + "[2H]")


@pytest.mark.parametrize("name", ["ethanol", "64-17-5", "spirit of wine", "caf\u00e9", "\ud800", "N-methyl", "  "])
def test_a_name_behind_a_smiles_is_ignored(name):
    for space in (" ", "\t"):
        assert read_smiles(f"CCO{space}{name}").ToBinary() == read_smiles("CCO").ToBinary()


def test_a_cxsmiles_extension_is_read_by_rdkit():
    radical = read_smiles("CCO |^1:0| a name")
    assert [atom.GetNumRadicalElectrons() for atom in radical.GetAtoms()] == [1, 0, 0]
    assert Chem.MolToSmiles(read_smiles("[NH3][Fe] |C:0.0|")) == Chem.MolToSmiles(read_smiles("[NH3]->[Fe]"))


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


@pytest.mark.parametrize(("smiles", "atoms", "rings"), [(ALUMINIUM_TRIOXALATE, 19, 3), (DIARYL_OXAZABOROLE, 19, 3)])
def test_read_smiles_forgives_the_valence_of_metals(smiles, atoms, rings):
    mol = read_smiles(smiles)
    assert mol.GetNumAtoms() == atoms
    assert mol.GetRingInfo().NumRings() == rings
    assert all(atom.GetTotalNumHs() >= 0 for atom in mol.GetAtoms())


def test_rdkit_is_silent_inside_our_calls_only(capfd):
    with pytest.raises(InputError):
        read_smiles("C1CC")
    penalized_logp("CCO")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C1CC")
    assert "unclosed ring" in capfd.readouterr().err


@given(st.text(alphabet="CNOcn()[]=#123+-@HAlB .%/\\*>", max_size=30) | st.text(max_size=10))
@example("C\t\x1f")
@example("C \x1c ethane")
def test_any_text_is_a_molecule_or_an_input_error(text):
    try:
        mol = read_smiles(text)
    except InputError:
        return
    assert mol.GetNumAtoms() > 0
