"""SMILES to graphs: the atoms and bonds of the ZINC benchmark, of OGB (Hu et al., NeurIPS 2020), and of users' tables.

OGB's features are copied, because importing ``ogb`` starts threads that look for updates.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
# Index = atom type of the ZINC benchmark's files: symbol, hydrogens written in the Kekule SMILES, sign of the charge.
ZINC_ATOM_TYPES = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
    "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip
ZINC_ATOM_INDEX = {name: index for index, name in enumerate(ZINC_ATOM_TYPES)}
ZINC_BOND_INDEX = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3}


@dataclass(frozen=True)
class MoleculeGraph:
    x: np.ndarray  # uint8 [n, F] atom features
    edge_index: np.ndarray  # int64 [2, e], both directions of each bond
    edge_attr: np.ndarray  # uint8 [e, C] bond features


def each(kind: type, methods: str) -> tuple[Callable[[Sequence], Iterable], ...]:
    """For each method of an atom or bond, the function of several that gives its values one by one."""
    return tuple(partial(map, getattr(kind, method)) for method in methods.split())


@dataclass(frozen=True)
class FeatureRows:
    """Features of atoms or bonds, computed once for all that have the same ``inputs``."""

    width: int
    inputs: tuple[Callable[[Sequence], Iterable], ...]  # each gives one value per atom or bond of a molecule
    compute: Callable[[Chem.Atom | Chem.Bond], list[int]]
    known: dict[tuple, bytes] = field(default_factory=dict)  # by the results of inputs

    def __call__(self, parts: Sequence[Chem.Atom | Chem.Bond]) -> np.ndarray:
        """Features of all atoms or bonds of a molecule: uint8 [len(parts), width]; raises as ``compute``."""
        keys = list(zip(*(read(parts) for read in self.inputs), strict=True))
        if not self.known.keys() >= set(keys):
            self.known.update((key, bytes(self.compute(part))) for key, part in zip(keys, parts, strict=True))
        rows = b"".join(map(self.known.__getitem__, keys))
        return np.frombuffer(rows, np.uint8).reshape(-1, self.width)


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
    atom_rows: FeatureRows
    bond_rows: FeatureRows
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


def mol_atom(atom: Chem.Atom) -> list[int]:
    """Features of an atom that do not depend on how the molecule is written, within ``MOL_ATOM_SIZES``."""
    ring = atom.GetOwningMol().GetRingInfo().MinAtomRingSize(atom.GetIdx())  # 0 for none
    features = [
        atom.GetAtomicNum(),
        ATOM_LABELS.get(label(atom), 0),
        atom.GetTotalDegree(),
        max(atom.GetFormalCharge() + MAX_CHARGE, 0),
        atom.GetTotalNumHs(),
        atom.GetNumRadicalElectrons(),
        int(atom.GetHybridization()),
        int(atom.GetIsAromatic()),
        min(ring, LARGEST_RING) - 2 if ring else 0,
    ]
    return [min(feature, size - 1) for feature, size in zip(features, MOL_ATOM_SIZES, strict=True)]


def mol_bond(bond: Chem.Bond) -> list[int]:
    """Features of a bond that do not depend on how the molecule is written; 0 for an unknown bond type."""
    order, stereo = BOND_ORDERS.get(bond.GetBondType(), 0), BOND_LABELS.get(label(bond), 0)
    return [order, stereo, int(bond.GetIsConjugated()), int(bond.IsInRing())]


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


# What all atoms of OGB and of "mol" have in common.
SURROUNDINGS = "GetTotalDegree GetFormalCharge GetTotalNumHs GetNumRadicalElectrons GetHybridization GetIsAromatic"
ZINC_ATOMS = FeatureRows(
    1, each(Chem.Atom, "GetAtomicNum GetFormalCharge GetNumExplicitHs GetNumRadicalElectrons"), zinc_atom_type
)
ZINC_BONDS = FeatureRows(1, each(Chem.Bond, "GetBondType"), zinc_bond_type)
OGB_ATOMS = FeatureRows(
    len(OGB_ATOM_SIZES), each(Chem.Atom, f"GetAtomicNum GetChiralTag {SURROUNDINGS} IsInRing"), ogb_atom
)
OGB_BONDS = FeatureRows(len(OGB_BOND_SIZES), each(Chem.Bond, "GetBondType GetStereo GetIsConjugated"), ogb_bond)
# Element (0 unknown), CIP label, bonds with hydrogens, charge, hydrogens, unpaired electrons, hybridization, aromatic,
# smallest ring (none, 3, 4, ... atoms).
MOL_ATOM_SIZES = (119, len(ATOM_LABELS), 11, 2 * MAX_CHARGE + 1, 9, 5, 9, 2, LARGEST_RING - 1)
MOL_BOND_SIZES = (5, 3, 2, 2)  # order (0 another), CIP label, conjugated, in a ring
LABELS = partial(map, label)
MOL_ATOMS = FeatureRows(
    len(MOL_ATOM_SIZES), (*each(Chem.Atom, f"GetAtomicNum {SURROUNDINGS}"), LABELS, ring_sizes), mol_atom
)
MOL_BONDS = FeatureRows(
    len(MOL_BOND_SIZES), (*each(Chem.Bond, "GetBondType GetIsConjugated IsInRing"), LABELS), mol_bond
)
AS_WRITTEN = {
    "zinc": Featurizer((len(ZINC_ATOM_TYPES),), (len(ZINC_BOND_INDEX) + 1,), ZINC_ATOMS, ZINC_BONDS, canonical_kekule),
    "ogb": Featurizer(OGB_ATOM_SIZES, OGB_BOND_SIZES, OGB_ATOMS, OGB_BONDS),
    "mol": Featurizer(MOL_ATOM_SIZES, MOL_BOND_SIZES, MOL_ATOMS, MOL_BONDS, with_stereo_labels),
}
FEATURIZERS = AS_WRITTEN | {
    f"{name}-{preparation}": replace(found, preparation=preparation)
    for name, found in AS_WRITTEN.items()
    for preparation in PREPARATIONS
}
FOR_TABLES = "mol"  # SMILES in users' tables may be written in any form


def as_written(featurizer: str) -> str:
    """The name of the featurizer with the same features and no preparation."""
    preparation = FEATURIZERS[featurizer].preparation
    return featurizer.removesuffix(f"-{preparation}") if preparation else featurizer


def prepared_name(featurizer: str, preparation: str) -> str:
    """The name of the featurizer with the same features and another preparation, or none for ""."""
    return f"{as_written(featurizer)}-{preparation}" if preparation else as_written(featurizer)


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
            if features.preparation and text != molecule:
                reductions[row] = reduction(read_smiles(molecule), mol)
            if guessed := guess(molecule):
                reductions[row] = f"{GUESSED}: read as {guessed}. {reductions[row]}".strip()
            reductions[row] = f"{ignored_name(molecule)} {reductions[row]}".strip()
            mols[row] = mol
            rows.append(row)
        except InputError as error:
            errors[row] = str(error)
    conditions = [sample.conditions for sample in smiles if isinstance(sample, Sample)]
    return Molecules(features.pack(graphs), np.array(rows, np.int64), errors, texts, mols, conditions, reductions)
