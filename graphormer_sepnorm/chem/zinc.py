"""Atom and bond types of the files of the ZINC benchmark."""

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
        raise InputError(f"the atom {atom_words(atom)} is not in this model's vocabulary")
    return [index]


def atom_words(atom: Chem.Atom) -> str:
    """An atom in the bracket notation of SMILES, with its unpaired electrons."""
    hydrogens, charge, unpaired = atom.GetTotalNumHs(), atom.GetFormalCharge(), atom.GetNumRadicalElectrons()
    written = f"H{hydrogens if hydrogens > 1 else ''}" if hydrogens else ""
    sign = f"{charge:+d}".replace("1", "") if abs(charge) == 1 else f"{charge:+d}" if charge else ""
    electrons = f" with {unpaired} unpaired electron{'s' if unpaired > 1 else ''}" if unpaired else ""
    return f"[{atom.GetSymbol()}{written}{sign}]{electrons}"


def zinc_bond_type(bond: Chem.Bond) -> list[int]:
    """Bond order; raises InputError for a bond type that the ZINC benchmark does not have."""
    index = ZINC_BOND_INDEX.get(bond.GetBondType())
    if index is None:
        raise InputError(f"bond type {bond.GetBondType().name.lower()} is not in this model's vocabulary")
    return [index]
