"""Kinds of molecules that readers of SMILES stumble over, and what molecules are grouped by."""

from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures, read_structures

ODDITIES = {
    "salt": "CC(=O)[O-].[Na+]",
    "mixture": "CCO.c1ccccc1.O",
    "charged": "C[N+](C)(C)CC(=O)[O-]",
    "isotope": "[2H]C([2H])([2H])[13CH2]O",
    "tetrahedral stereo": "C[C@H](N)C(=O)O",
    "double bond stereo": "F/C=C/Cl",
    "single atom": "[He]",
    "single carbon": "C",
    "explicit hydrogens": "[H]C([H])([H])O[H]",
    "radical": "C[CH2]",
    "dative bond": "[NH3]->[Fe]",
    "200 atoms": "C" * 200,
    "spaces around": " CCO ",
    "with a name": "CCO spirit of wine",
    "CXSMILES": "CCO |^1:0|",
}
# Of ogbg-molhiv; RDKit's strict parser refuses their metals and metalloids.
REFUSED_BY_STRICT_RDKIT = [
    "O=C1O[Al]23(OC1=O)(OC(=O)C(=O)O2)OC(=O)C(=O)O3",
    "Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1",
    "Oc1ccc(C2Oc3cc(O)cc4c3C(=[O+][AlH3-3]35([O+]=C6c7c(cc(O)cc7[OH+]3)OC(c3ccc(O)cc3O)C6O)"
    "([O+]=C3c6c(cc(O)cc6[OH+]5)OC(c5ccc(O)cc5O)C3O)[OH+]4)C2O)c(O)c1",
    "CC1=C2[OH+][AlH3-3]34([O+]=C2C=CN1C)([O+]=C1C=CN(C)C(C)=C1[OH+]3)[O+]=C1C=CN(C)C(C)=C1[OH+]4",
    "CC(c1cccs1)=[N+]1[N-]C(N)=[S+][AlH3-]12[OH+]B(c1ccccc1)[OH+]2",
    "CC(c1ccccn1)=[N+]1[N-]C(N)=[S+][AlH3-]12[OH+]B(c1ccccc1)[OH+]2",
    "[Na+].c1ccc([SH+][GeH2+]2[SH+]c3ccccc3[SH+]2)c([SH+][GeH2+]2[SH+]c3ccccc3[SH+]2)c1",
]
UNREADABLE = {
    "": "empty",
    "   ": "empty",
    "C[C": "not a valid SMILES",
    "hello world": "not a valid SMILES",
    "C C": "space inside",
    "*OCCO*": "open place",
    "CCO and CC(C)O": "space inside",
    "CC>>CO": "is a reaction",
    "C(C)(C)(C)(C)C": "impossible molecule",
    "c1cccc1": "impossible molecule",
    "C" * 1001: "at most 1,000",
    "CCO\u00e9": "not printable ASCII",
    "[#119]": "RDKit fails on",
    "[#255]": "RDKit fails on",
    "[CH128]": "RDKit fails on",
    "[CH999]": "RDKit fails on",
    "[FeH999]": "RDKit fails on",
}


def structures_of(smiles: list[str]) -> Structures:
    """What molecules are grouped by, as ``read_labelled`` finds it in a table."""
    found = read_structures("mol", smiles)
    return Structures(each for each in found if isinstance(each, MoleculeStructure))
