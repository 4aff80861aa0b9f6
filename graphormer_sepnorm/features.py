"""SMILES to graphs, and the vocabularies of atoms and bonds.

Axis letters: T atoms and E directed bonds of all molecules.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from ogb.utils.features import (
    atom_to_feature_vector,
    bond_to_feature_vector,
    get_atom_feature_dims,
    get_bond_feature_dims,
)
from rdkit import Chem

from graphormer_sepnorm.chemistry import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import PackedGraphs, bond_types, pointers

# Index = atom type of the ZINC benchmark's files: symbol, hydrogens written in the SMILES, sign of the charge.
ZINC_ATOM_TYPES = (
    "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
    "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +",
)  # fmt: skip
ZINC_ATOM_INDEX = {name: index for index, name in enumerate(ZINC_ATOM_TYPES)}
ZINC_BOND_INDEX = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3}


@dataclass(frozen=True)
class MoleculeGraph:
    """One molecule: ``x`` [n, F], ``edge_index`` [2, e] with both directions of each bond, ``edge_attr`` [e, C]."""

    x: np.ndarray
    edge_index: np.ndarray
    edge_attr: np.ndarray


@dataclass(frozen=True)
class Featurizer:
    """How atoms and bonds become integers.

    Attributes:
        atom_sizes, bond_sizes: sizes of the vocabularies of the columns of ``x`` and ``edge_attr``.
        read: molecule to (atom features, bond features), one row per atom and per bond of the molecule; raises
            InputError for an atom or bond outside the vocabulary.
    """

    atom_sizes: tuple[int, ...]
    bond_sizes: tuple[int, ...]
    read: Callable[[Chem.Mol], tuple[list[list[int]], list[list[int]]]]

    def graph(self, smiles: str) -> MoleculeGraph:
        """Reads a SMILES; raises InputError with the reason if it cannot be read."""
        mol = read_smiles(smiles)
        atoms, bonds = self.read(mol)
        ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()], np.int64).reshape(-1, 2)
        edge_attr = np.array(bonds, np.int64).reshape(-1, len(self.bond_sizes))
        return MoleculeGraph(
            x=np.array(atoms, np.int64),
            edge_index=np.concatenate([ends, ends[:, ::-1]]).T,
            edge_attr=np.concatenate([edge_attr, edge_attr]),
        )

    def graphs(self, smiles: Iterable[str]) -> PackedGraphs:
        """Reads SMILES and packs them; raises InputError that names the first row that cannot be read."""
        molecules = []
        for row, text in enumerate(smiles):
            try:
                molecules.append(self.graph(text))
            except InputError as error:
                raise InputError(f"row {row}, counted from 0: {error}") from None
        return self.pack(molecules)

    def pack(self, molecules: list[MoleculeGraph]) -> PackedGraphs:
        """Packs molecules one after another."""
        return PackedGraphs(
            x=np.concatenate([m.x for m in molecules]),
            atom_ptr=pointers([len(m.x) for m in molecules]),
            edge_index=np.concatenate([m.edge_index for m in molecules], axis=1),
            edge_ptr=pointers([len(m.edge_attr) for m in molecules]),
            bond=bond_types(np.concatenate([m.edge_attr for m in molecules]), self.bond_sizes),
        )


def zinc_atom_type(atom: Chem.Atom) -> int:
    """Atom type of the ZINC benchmark; raises InputError for an element it does not have."""
    charge, hydrogens = atom.GetFormalCharge(), atom.GetNumExplicitHs()
    name = atom.GetSymbol() + (f" H{hydrogens}" if hydrogens else "") + (" +" if charge > 0 else " -" if charge else "")
    index = ZINC_ATOM_INDEX.get(name, ZINC_ATOM_INDEX.get(atom.GetSymbol()))
    if index is None:
        raise InputError(f"element {atom.GetSymbol()} is not in this model's vocabulary")
    return index


def zinc_bond_type(bond: Chem.Bond) -> int:
    index = ZINC_BOND_INDEX.get(bond.GetBondType())
    if index is None:
        raise InputError(f"a {bond.GetBondType().name.lower()} bond is not in this model's vocabulary")
    return index


def zinc_features(mol: Chem.Mol) -> tuple[list[list[int]], list[list[int]]]:
    """One column each, as in the ZINC benchmark: atom type, and bond order of the Kekule form."""
    atoms = [[zinc_atom_type(atom)] for atom in mol.GetAtoms()]
    kekulized = Chem.Mol(mol)
    Chem.Kekulize(kekulized, clearAromaticFlags=True)
    return atoms, [[zinc_bond_type(bond)] for bond in kekulized.GetBonds()]


def ogb_features(mol: Chem.Mol) -> tuple[list[list[int]], list[list[int]]]:
    """OGB's nine atom and three bond features."""
    return (
        [atom_to_feature_vector(atom) for atom in mol.GetAtoms()],
        [bond_to_feature_vector(bond) for bond in mol.GetBonds()],
    )


FEATURIZERS = {
    "zinc": Featurizer((len(ZINC_ATOM_TYPES),), (len(ZINC_BOND_INDEX) + 1,), zinc_features),
    "ogb": Featurizer(tuple(get_atom_feature_dims()), tuple(get_bond_feature_dims()), ogb_features),
}
