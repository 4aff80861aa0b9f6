"""SMILES to graphs: the atoms and bonds of the ZINC benchmark, of OGB (Hu et al., NeurIPS 2020), and of users' tables.

OGB's features are copied, because importing ``ogb`` starts threads that look for updates.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import (
    atoms_of,
    bonds_of,
    guess,
    ignored_name,
    is_smiles,
    one_molecule,
    quoted,
    read_smiles,
    smiles_of,
)
from graphormer_sepnorm.chem.standardize import PREPARATIONS, label, reduction, with_stereo_labels
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs, bond_types, packed_graphs, pointers

# Index = CIP label; labels of axes and planes, which SMILES cannot express, count as none.
ATOM_LABELS = {"": 0, "R": 1, "S": 2, "r": 3, "s": 4}
BOND_LABELS = {"": 0, "E": 1, "Z": 2, "e": 1, "z": 2}
BOND_ORDERS = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3, Chem.BondType.AROMATIC: 4}
ISOTOPE = re.compile(r"\[\d")
MAX_CHARGE = 4
GUESSED = "The InChI leaves open where a hydrogen or charge is"
LARGEST_RING = 8
Inputs = tuple[Callable[[Sequence], Iterable], ...]  # each gives a value for each atom or bond of a molecule
Rows = Callable[[Sequence], np.ndarray]  # uint8 [atoms or bonds, features] of those of a molecule
# Index = atom type of the ZINC benchmark's files: symbol, hydrogens written in the Kekule SMILES, sign of the charge.
ZINC_ATOM_TYPES = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
    "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip


@dataclass(frozen=True)
class MoleculeGraph:
    x: np.ndarray  # uint8 [n, F] atom features
    edge_index: np.ndarray  # int64 [2, e], both directions of each bond
    edge_attr: np.ndarray  # uint8 [e, C] bond features


def each(kind: type, methods: str) -> Inputs:
    """For each method of an atom or bond, the function of several that gives its values one by one."""
    return tuple(partial(map, getattr(kind, method)) for method in methods.split())


def feature_rows(sizes: tuple[int, ...], inputs: Inputs, compute: Callable[..., list[int]]) -> Rows:
    """A function of all atoms or bonds of a molecule to uint8 [len(parts), len(sizes)]; raises as ``compute``.

    Each of ``inputs`` gives a value per part, from which ``compute`` gives the features; each is less than its size.
    """

    @cache
    def row(*values: Any) -> bytes:
        return bytes(min(feature, size - 1) for feature, size in zip(compute(*values), sizes, strict=True))

    def rows(parts: Sequence) -> np.ndarray:
        found = b"".join(map(row, *(read(parts) for read in inputs)))
        return np.frombuffer(found, np.uint8).reshape(-1, len(sizes))

    return rows


def canonical_kekule(mol: Chem.Mol, written: str) -> Chem.Mol:
    """The Kekule form of the canonical SMILES without isotopes, with the atoms in the order of ``mol``."""
    mol = Chem.Mol(mol)
    smiles = Chem.MolToSmiles(mol)
    if ISOTOPE.search(smiles):
        for atom in mol.GetAtoms():
            atom.SetIsotope(0)
        smiles = Chem.MolToSmiles(mol)
    if smiles == written:
        Chem.Kekulize(mol, clearAromaticFlags=True)
        return mol
    canonical = Chem.MolFromSmiles(smiles)
    if canonical is None or canonical.GetNumAtoms() != mol.GetNumAtoms():
        raise InputError(f"RDKit does not read {quoted(smiles)}, which is how it writes the molecule")
    Chem.Kekulize(canonical, clearAromaticFlags=True)
    order = list(mol.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"])
    return Chem.RenumberAtoms(canonical, np.argsort(order).tolist())


@dataclass(frozen=True)
class Featurizer:
    """Maps atoms and bonds to integers below 256."""

    atom_sizes: tuple[int, ...]
    bond_sizes: tuple[int, ...]
    atom_rows: Rows
    bond_rows: Rows
    prepare: Callable[[Chem.Mol, str], Chem.Mol] = lambda mol, written: mol  # given the SMILES it was read from
    preparation: str = ""  # name in PREPARATIONS of what is done to molecules first

    def graph(self, smiles: Chem.Mol | str | None) -> MoleculeGraph:
        text, mol = self.read(smiles)
        with one_molecule(text):
            return self.features(mol, text)

    def read(self, smiles: Chem.Mol | str | None) -> tuple[str, Chem.Mol]:
        """The SMILES and the molecule after preparation; an unaffected SMILES is kept as written."""
        mol = read_smiles(smiles)
        text = smiles if isinstance(smiles, str) and is_smiles(smiles) else smiles_of(mol)
        ready = PREPARATIONS[self.preparation](mol) if self.preparation else mol
        if ready is mol or (left := smiles_of(ready)) == smiles_of(Chem.Mol(mol)):
            return text, mol
        return left, read_smiles(left)

    def features(self, mol: Chem.Mol, written: str = "") -> MoleculeGraph:
        """The features of a molecule, atoms in its order; ``written`` is passed to ``prepare``."""
        return self.features_as_prepared(self.prepare(mol, written))

    def features_as_prepared(self, mol: Chem.Mol) -> MoleculeGraph:
        """The features of a molecule that ``prepare`` returned, or of a changed copy of one."""
        bonds = bonds_of(mol)
        edge_attr = self.bond_rows(bonds)
        ends = np.array([[b.GetBeginAtomIdx() for b in bonds], [b.GetEndAtomIdx() for b in bonds]], np.int64)
        return MoleculeGraph(
            x=self.atom_rows(atoms_of(mol)),
            edge_index=np.concatenate([ends, ends[::-1]], axis=1),
            edge_attr=np.concatenate([edge_attr, edge_attr]),
        )

    def pack(self, molecules: list[MoleculeGraph]) -> Graphs:
        """Packs molecules one after another."""
        no_atoms = np.empty((0, len(self.atom_sizes)), np.uint8)
        no_bonds = np.empty((0, len(self.bond_sizes)), np.uint8)
        return packed_graphs(
            x=np.concatenate([no_atoms, *(m.x for m in molecules)]),
            atom_ptr=pointers([len(m.x) for m in molecules]),
            edge_index=np.concatenate([np.empty((2, 0), np.int64), *(m.edge_index for m in molecules)], axis=1),
            edge_ptr=pointers([len(m.edge_attr) for m in molecules]),
            bond=bond_types(np.concatenate([no_bonds, *(m.edge_attr for m in molecules)]), self.bond_sizes),
        )


def ring_sizes(atoms: Sequence[Chem.Atom]) -> list[int]:
    """The size of the smallest ring through each atom of a molecule, 0 for none."""
    rings = atoms[0].GetOwningMol().GetRingInfo()
    return [rings.MinAtomRingSize(number) for number in range(len(atoms))]


def mol_atom(ring: int, cip: str, number: int, degree: int, charge: int, *others: int) -> list[int]:
    """Features of an atom that do not depend on how the molecule is written; ``ring`` is its size, 0 for none."""
    size = min(ring, LARGEST_RING) - 2 if ring else 0
    return [number, ATOM_LABELS.get(cip, 0), degree, max(charge + MAX_CHARGE, 0), *others, size]


def mol_bond(order: Chem.BondType, conjugated: bool, in_ring: bool, cip: str) -> list[int]:
    """Features of a bond that do not depend on how the molecule is written; 0 for an unknown bond type."""
    return [BOND_ORDERS.get(order, 0), BOND_LABELS.get(cip, 0), conjugated, in_ring]


def zinc_atom(symbol: str, charge: int, written: int, hydrogens: int, electrons: int) -> list[int]:
    """Atom type of the ZINC benchmark, by the hydrogens that are written; raises InputError for other atoms."""
    name = symbol + (f" H{written}" if written else "") + (" +" if charge > 0 else " -" if charge else "")
    if symbol not in ZINC_ATOM_TYPES:
        raise InputError(f"element {symbol} is not in this model's vocabulary")
    if name not in ZINC_ATOM_TYPES or abs(charge) > 1 or electrons:
        atom = Chem.MolFromSmiles(f"[{symbol}H{hydrogens}{charge:+}]", sanitize=False)
        raise InputError(f"the atom {Chem.MolToSmiles(atom, allHsExplicit=True)} is not in this model's vocabulary")
    return [ZINC_ATOM_TYPES.index(name)]


def zinc_bond(order: Chem.BondType) -> list[int]:
    """Bond order; raises InputError for a bond type that the ZINC benchmark does not have."""
    if order == Chem.BondType.AROMATIC or order not in BOND_ORDERS:
        raise InputError(f"bond type {order.name.lower()} is not in this model's vocabulary")
    return [BOND_ORDERS[order]]


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


def ogb_atom(
    number: int, tag: Any, degree: int, charge: int, hydrogens: int, electrons: int, hybridization: Any, *others: int
) -> list[int]:
    """The nine features of OGB's ``atom_to_feature_vector``."""
    charge = charge + OGB_MAX_CHARGE if abs(charge) <= OGB_MAX_CHARGE else 2 * OGB_MAX_CHARGE + 1
    element, chirality = number - 1 if number else 118, place(OGB_CHIRAL_TAGS, tag)
    return [element, chirality, degree, charge, hydrogens, electrons, place(OGB_HYBRIDIZATIONS, hybridization), *others]


def ogb_bond(order: Chem.BondType, stereo: Chem.BondStereo, conjugated: bool) -> list[int]:
    """The three features of OGB's ``bond_to_feature_vector``; raises InputError for stereo outside its vocabulary."""
    if stereo.name not in OGB_STEREO:
        raise InputError(f"bond stereo {stereo.name.removeprefix('STEREO').lower()} is not in this model's vocabulary")
    return [place(OGB_ORDERS, order), OGB_STEREO.index(stereo.name), conjugated]


def place(vocabulary: tuple[str, ...], word: Any) -> int:
    """The index of RDKit's name of something; the length of the vocabulary for other names."""
    return vocabulary.index(word.name) if word.name in vocabulary else len(vocabulary)


# Element (0 unknown), CIP label, bonds with hydrogens, charge, hydrogens, unpaired electrons, hybridization, aromatic,
# smallest ring (none, 3, 4, ... atoms).
MOL_ATOM_SIZES = (119, len(ATOM_LABELS), 11, 2 * MAX_CHARGE + 1, 9, 5, 9, 2, LARGEST_RING - 1)
MOL_BOND_SIZES = (5, 3, 2, 2)  # order (0 another), CIP label, conjugated, in a ring
ZINC_ATOM_SIZES, ZINC_BOND_SIZES = (len(ZINC_ATOM_TYPES),), (4,)
LABELS, OTHERS = partial(map, label), "GetTotalNumHs GetNumRadicalElectrons GetHybridization GetIsAromatic"
MOL_ATOM: Inputs = ring_sizes, LABELS, *each(Chem.Atom, f"GetAtomicNum GetTotalDegree GetFormalCharge {OTHERS}")
MOL_BOND: Inputs = *each(Chem.Bond, "GetBondType GetIsConjugated IsInRing"), LABELS
OGB_ATOM = each(Chem.Atom, f"GetAtomicNum GetChiralTag GetTotalDegree GetFormalCharge {OTHERS} IsInRing")
OGB_BOND = each(Chem.Bond, "GetBondType GetStereo GetIsConjugated")
ZINC_ATOM = each(Chem.Atom, "GetSymbol GetFormalCharge GetNumExplicitHs GetTotalNumHs GetNumRadicalElectrons")
ZINC_BOND = each(Chem.Bond, "GetBondType")
MOL = feature_rows(MOL_ATOM_SIZES, MOL_ATOM, mol_atom), feature_rows(MOL_BOND_SIZES, MOL_BOND, mol_bond)
OGB = feature_rows(OGB_ATOM_SIZES, OGB_ATOM, ogb_atom), feature_rows(OGB_BOND_SIZES, OGB_BOND, ogb_bond)
ZINC = feature_rows(ZINC_ATOM_SIZES, ZINC_ATOM, zinc_atom), feature_rows(ZINC_BOND_SIZES, ZINC_BOND, zinc_bond)
AS_WRITTEN = {
    "zinc": Featurizer(ZINC_ATOM_SIZES, ZINC_BOND_SIZES, *ZINC, canonical_kekule),
    "ogb": Featurizer(OGB_ATOM_SIZES, OGB_BOND_SIZES, *OGB),
    "mol": Featurizer(MOL_ATOM_SIZES, MOL_BOND_SIZES, *MOL, with_stereo_labels),
}
FEATURIZERS = AS_WRITTEN | {
    f"{name}-{preparation}": replace(found, preparation=preparation)
    for name, found in AS_WRITTEN.items()
    for preparation in PREPARATIONS
}
FOR_TABLES = "mol"  # SMILES in users' tables may be written in any form


def as_written(featurizer: str) -> str:
    """The name of the featurizer with the same features and no preparation."""
    return featurizer.partition("-")[0]


def prepared_name(featurizer: str, preparation: str) -> str:
    """The name of the featurizer with the same features and another preparation, or none for ""."""
    return f"{as_written(featurizer)}-{preparation}".removesuffix("-")


def without_salts(featurizer: str) -> str:
    """The name of the featurizer with the same features that strips salts first, as all preparations do."""
    return featurizer if FEATURIZERS[featurizer].preparation else prepared_name(featurizer, "without-salts")


@dataclass(frozen=True)
class Sample:
    """A molecule and the conditions under which it is measured, as texts of a table."""

    smiles: str | None
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Molecules:
    """The molecules read from some SMILES, read once and shared by everything that uses them."""

    graphs: Graphs  # of the molecules that could be read
    rows: np.ndarray  # int64 [len(graphs)] index of the SMILES of each graph
    errors: list[str]  # of each SMILES, why it could not be read, or ""
    smiles: Sequence[str | None]  # as returned by Featurizer.read
    mols: list[Chem.Mol | None]  # not to be modified; None where there is an error
    conditions: Sequence[tuple[str, ...]] = ()  # of each SMILES, of its measurement
    reductions: Sequence[str] = ()  # of each SMILES, what was guessed of an InChI or removed, or ""
    shared: dict[Callable, Any] = field(default_factory=dict, repr=False)  # what several models read, by its function

    @classmethod
    def of_graphs(cls, graphs: Graphs) -> "Molecules":
        """Molecules for which only the graphs are known."""
        count = len(graphs)
        return cls(graphs, np.arange(count), [""] * count, [None] * count, [None] * count)


def read_graphs(featurizer: str, smiles: Sequence[str | None], first_row: int = 0) -> Graphs:
    """The graphs of a whole table; raises InputError with the row of a SMILES that cannot be read."""
    features = FEATURIZERS[featurizer]
    graphs = []
    for row, text in enumerate(smiles, first_row):
        try:
            graphs.append(features.graph(text))
        except InputError as error:
            raise InputError(f"row {row} (counted from 0): {error}") from None
    return features.pack(graphs)


def read_molecules(featurizer: str, smiles: Sequence[Sample | Chem.Mol | str | None]) -> Molecules:
    """Reads molecules; those that cannot be read are reported in ``errors``."""
    features = FEATURIZERS[featurizer]
    graphs, rows, errors, reductions = [], [], [""] * len(smiles), [""] * len(smiles)
    texts: list[str | None] = [None] * len(smiles)
    mols: list[Chem.Mol | None] = [None] * len(smiles)
    for row, sample in enumerate(smiles):
        molecule = sample.smiles if isinstance(sample, Sample) else sample
        texts[row] = molecule if isinstance(molecule, str) else None
        try:
            text, mol = features.read(molecule)
            texts[row] = text
            with one_molecule(text):
                graphs.append(features.features(mol, text))
            guessed = f"{GUESSED}: read as {form}." if (form := guess(molecule)) else ""
            lost = reduction(read_smiles(molecule), mol) if features.preparation and text != molecule else ""
            reductions[row] = " ".join(filter(None, (ignored_name(molecule), guessed, lost)))
            mols[row] = mol
            rows.append(row)
        except InputError as error:
            errors[row] = str(error)
    conditions = [sample.conditions for sample in smiles if isinstance(sample, Sample)]
    return Molecules(features.pack(graphs), np.array(rows, np.int64), errors, texts, mols, conditions, reductions)
