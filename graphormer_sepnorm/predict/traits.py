"""Traits of molecules that are compared with those of training molecules, and sentences on what none of these has."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from rdkit import Chem
from rdkit.Chem import rdqueries

from graphormer_sepnorm.chem.features import Molecules
from graphormer_sepnorm.chem.smiles import Molecule, atoms_of, bonds_of, molecule_of
from graphormer_sepnorm.chem.standardize import NONMETALS
from graphormer_sepnorm.errors import InputError

UNKNOWN_ORDERS = frozenset([Chem.BondType.UNSPECIFIED, Chem.BondType.ZERO, Chem.BondType.HYDROGEN, Chem.BondType.OTHER])
RADICAL = rdqueries.NumRadicalElectronsGreaterQueryAtom(0)  # queries are ten times as fast as loops in Python
UNUSUAL_BOND = Chem.MolFromSmarts("*~;!-;!=;!#;!:*")
Found = TypeVar("Found")

# Features of molecules that their kinds of atoms do not show: in words, how to find one, and what its SMILES contains.
RARITIES: dict[str, tuple[Callable[[Chem.Mol], bool], re.Pattern]] = {
    "a radical": (
        lambda mol: (
            len(atoms := mol.GetAtomsMatchingQuery(RADICAL)) > 0
            and any(atom.GetAtomicNum() in NONMETALS for atom in atoms)
        ),
        re.compile(r"\[(?!nH\]|C@@?H?\]|[NOS][+-]\]|NH[23]\+\]|Na\+\]|[A-Z][a-z]?-\])|\^\d"),  # not of usual atoms
    ),
    "a bond of unknown order (~)": (
        lambda mol: (
            mol.HasSubstructMatch(UNUSUAL_BOND) and any(bond.GetBondType() in UNKNOWN_ORDERS for bond in bonds_of(mol))
        ),
        re.compile("~|H:"),
    ),
    "centres of racemic or relative stereo": (lambda mol: len(mol.GetStereoGroups()) > 0, re.compile(r"[&o]\d+:")),
}


class Traits(NamedTuple):
    """The features of a molecule that are compared with those of training molecules, except its fingerprint."""

    kinds: frozenset[tuple[int, int]]  # atomic number and charge of its atoms
    atoms: int  # heavy ones
    charge: int
    parts: tuple[str, ...]  # SMILES of the different parts of a salt or a mixture; none for a single part
    rarities: tuple[str, ...]  # those of ``RARITIES`` that it has


def traits_of(mol: Chem.Mol) -> Traits:
    kinds = frozenset((atom.GetAtomicNum(), atom.GetFormalCharge()) for atom in atoms_of(mol))
    parts = tuple(dict.fromkeys(Chem.MolToSmiles(mol).split("."))) if len(Chem.GetMolFrags(mol)) > 1 else ()
    rarities = tuple(words for words, (has, _) in RARITIES.items() if has(mol))
    return Traits(kinds, mol.GetNumHeavyAtoms(), Chem.GetFormalCharge(mol), parts, rarities)


def traits_of_all(molecules: Molecules) -> list[Traits | None]:
    """The traits of each of M molecules, None for one that cannot be read; models of the same molecules share them."""
    if traits_of_all not in molecules.shared:
        molecules.shared[traits_of_all] = [mol and attempt(traits_of, mol) for mol in molecules.mols]
    return molecules.shared[traits_of_all]


class Known(Protocol):
    """Features that training molecules have."""

    @property
    def known_kinds(self) -> frozenset[tuple[int, int]]: ...  # atomic number and charge of their atoms
    @property
    def atoms(self) -> Iterable[int]: ...  # the least and the largest number of heavy atoms
    @property
    def charges(self) -> Iterable[int]: ...  # the lowest and the highest of a molecule
    @property
    def knows_mixtures(self) -> bool: ...  # whether one has several parts, as a salt has
    @property
    def known_rarities(self) -> frozenset[str]: ...  # those of ``RARITIES`` that one has


def strange(traits: Traits, known: Known) -> list[str]:
    """Sentences on what no training molecule has: parts, elements, charged atoms, ``RARITIES``, size, charge."""
    warnings = []
    if traits.parts and not known.knows_mixtures:
        parts = " and ".join(traits.parts)
        warnings.append(f"The molecule is a salt or a mixture ({parts}); no training molecule is one.")
    if new := traits.kinds - known.known_kinds:
        elements = {number for number, _ in known.known_kinds}
        if unknown := sorted({number for number, _ in new} - elements):  # hydrogens are atoms only where they are drawn
            drawn = "deuterium or another hydrogen drawn as an atom"
            words = (drawn if number == 1 else symbol_of(number) for number in unknown)
            warnings.append(f"No training molecule contains {' or '.join(words)}.")
        warnings += [
            f"No training molecule contains {symbol_of(number)} with {charge_words(charge)}."
            for number, charge in sorted(new)
            if number in elements
        ]
    rare = [words for words in traits.rarities if words not in known.known_rarities]
    warnings += [f"The molecule has {words}; no training molecule has." for words in rare]
    (fewest, most), (lowest, highest) = known.atoms, known.charges
    if not fewest <= traits.atoms <= most:
        heavy = f"{traits.atoms} heavy atom{'s' * (traits.atoms != 1)}"
        warnings.append(f"The molecule has {heavy}; training molecules have {fewest} to {most}.")
    if not lowest <= traits.charge <= highest:
        several = f"charges from {lowest:+d} to {highest:+d}".replace("+0", "0")
        known_charges = several if lowest < highest else charge_words(lowest)
        warnings.append(f"The molecule has {charge_words(traits.charge)}; training molecules have {known_charges}.")
    return warnings


def attempt(describe: Callable[[Chem.Mol], Found], molecule: Molecule) -> Found | None:
    """A description of a molecule; None if it cannot be read or RDKit fails on it."""
    try:
        return describe(molecule_of(molecule))
    except InputError:
        return None


def symbol_of(number: int) -> str:
    return Chem.GetPeriodicTable().GetElementSymbol(number)


def charge_words(charge: int) -> str:
    return f"a charge of {charge:+d}" if charge else "no charge"
