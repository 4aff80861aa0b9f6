"""Atom and bond types of the files of the ZINC benchmark, and the features of OGB (Hu et al., NeurIPS 2020).

The latter are copied because importing ``ogb`` starts threads that look for updates.
"""

from rdkit import Chem

from graphormer_sepnorm.errors import InputError

# Index = atom type of the ZINC benchmark's files: symbol, hydrogens written in the Kekule SMILES, sign of the charge.
ZINC_ATOM_TYPES = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
    "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip
ZINC_ATOM_INDEX = {name: index for index, name in enumerate(ZINC_ATOM_TYPES)}
ZINC_BOND_INDEX = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3}


def zinc_atom_type(atom: Chem.Atom) -> list[int]:
    """Atom type of the ZINC benchmark; raises InputError for an atom that has none."""
    charge, hydrogens = atom.GetFormalCharge(), atom.GetNumExplicitHs()
    name = atom.GetSymbol() + (f" H{hydrogens}" if hydrogens else "") + (" +" if charge > 0 else " -" if charge else "")
    index = ZINC_ATOM_INDEX.get(name)
    if atom.GetSymbol() not in ZINC_ATOM_INDEX:
        raise InputError(f"element {atom.GetSymbol()} is not in this model's vocabulary")
    if index is None or abs(charge) > 1 or atom.GetNumRadicalElectrons():
        written = Chem.MolFragmentToSmiles(atom.GetOwningMol(), [atom.GetIdx()], allHsExplicit=True)
        raise InputError(f"the atom {written} is not in this model's vocabulary")
    return [index]


def zinc_bond_type(bond: Chem.Bond) -> list[int]:
    """Bond order; raises InputError for a bond type that the ZINC benchmark does not have."""
    index = ZINC_BOND_INDEX.get(bond.GetBondType())
    if index is None:
        raise InputError(f"bond type {bond.GetBondType().name.lower()} is not in this model's vocabulary")
    return [index]


# Element (118 unknown), chiral tag, bonds with hydrogens, charge, hydrogens, unpaired electrons, hybridization,
# aromatic, in a ring; the last entry of each stands for all other values.
OGB_ATOM_SIZES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
# Order (4 another), stereo, conjugated.
OGB_BOND_SIZES = (5, 6, 2)
OGB_CHIRAL_TAGS = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
OGB_HYBRIDIZATIONS = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
OGB_ORDERS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
OGB_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")
OGB_MAX_CHARGE = 5


def ogb_atom(atom: Chem.Atom) -> list[int]:
    """The nine features of OGB's ``atom_to_feature_vector``."""
    number, charge = atom.GetAtomicNum(), atom.GetFormalCharge()
    features = [
        number - 1 if number else 118,
        place(OGB_CHIRAL_TAGS, str(atom.GetChiralTag())),
        atom.GetTotalDegree(),
        charge + OGB_MAX_CHARGE if abs(charge) <= OGB_MAX_CHARGE else 2 * OGB_MAX_CHARGE + 1,
        atom.GetTotalNumHs(),
        atom.GetNumRadicalElectrons(),
        place(OGB_HYBRIDIZATIONS, str(atom.GetHybridization())),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]
    return [min(feature, size - 1) for feature, size in zip(features, OGB_ATOM_SIZES, strict=True)]


def ogb_bond(bond: Chem.Bond) -> list[int]:
    """The three features of OGB's ``bond_to_feature_vector``; raises InputError for stereo outside its vocabulary."""
    stereo = str(bond.GetStereo())
    if stereo not in OGB_STEREO:
        raise InputError(f"bond stereo {stereo.removeprefix('STEREO').lower()} is not in this model's vocabulary")
    return [place(OGB_ORDERS, str(bond.GetBondType())), OGB_STEREO.index(stereo), int(bond.GetIsConjugated())]


def place(vocabulary: tuple[str, ...], word: str) -> int:
    """The index of a word in the vocabulary; the length of the vocabulary for other words."""
    return vocabulary.index(word) if word in vocabulary else len(vocabulary)
