"""Molecular features that members read. Each kind is computed once, on first use.

Axis letters: M molecules, D descriptors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array, vstack

from graphormer_sepnorm.chem.count_fingerprints import KINDS, MORGAN, Kinds, count_fingerprints
from graphormer_sepnorm.chem.fast_descriptors import fast_descriptors
from graphormer_sepnorm.chem.features import FEATURIZERS, MoleculeGraph, as_written
from graphormer_sepnorm.chem.fingerprints import SIZE
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.predict.domain import Look, look_at
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks

CHUNK = 200  # molecules per call of a worker process: half a second
Rows = TypeVar("Rows")


@dataclass
class MoleculeFeatures:
    molecules: Sequence[Molecule]  # readable molecules or SMILES, without the parts that a featurizer strips
    computed: dict[Callable[["MoleculeFeatures"], Any], Any] = field(default_factory=dict)  # by function: a row each
    shared: dict[Callable[["MoleculeFeatures"], Any], Any] = field(default_factory=dict)  # computed by other models

    def __len__(self) -> int:
        return len(self.molecules)

    def of(self, view: Callable[["MoleculeFeatures"], Rows]) -> Rows:
        """The result of a function of the molecules, computed on first use."""
        if view not in self.computed:
            self.computed[view] = self.shared[view] if view in self.shared else view(self)
            if isinstance(view, Counts) or view is descriptors:
                self.shared[view] = self.computed[view]
        return self.computed[view]

    def take(self, rows: np.ndarray) -> "MoleculeFeatures":
        computed = {
            view: values.take(rows) if isinstance(values, Graphs) else values[rows]
            for view, values in self.computed.items()
        }
        return MoleculeFeatures([self.molecules[row] for row in rows.tolist()], computed)

    def read(self, featurizer: str) -> None:
        """Computes the missing features of a training table, many SMILES in processes."""
        graphs = GraphsOf.named(featurizer)
        if {graphs, Counts(), descriptors, looks} <= self.computed.keys():
            return
        work = partial(read_chunk, graphs.featurizer)
        chunks = -(-len(self.molecules) // CHUNK)
        parts = [part for _, part in tracked(map_chunks(work, in_chunks(self.molecules, CHUNK), list), chunks)]
        self.computed[graphs] = graphs.packed([graph for part in parts for graph in part.graphs])
        self.computed[Counts()] = csr_array(vstack([count_fingerprints([]), *(part.counts for part in parts)], "csr"))
        self.computed[descriptors] = np.concatenate([fast_descriptors([]), *(part.descriptors for part in parts)])
        self.computed[looks] = as_objects([look for part in parts for look in part.looks])


@dataclass(frozen=True)
class GraphsOf:
    """The graphs of molecules by a featurizer that does not standardize them."""

    featurizer: str

    @classmethod
    def named(cls, featurizer: str) -> "GraphsOf":
        return cls(as_written(featurizer))

    def __call__(self, molecules: MoleculeFeatures) -> Graphs:
        return self.packed([graph_of(self.featurizer, molecule) for molecule in molecules.molecules])

    def packed(self, graphs: list[MoleculeGraph]) -> Graphs:
        return FEATURIZERS[self.featurizer].pack(graphs)


@dataclass(frozen=True)
class Counts:
    """``count_fingerprints`` of molecules of some kinds: uint16 [M, K x SIZE]."""

    kinds: Kinds = KINDS

    def __call__(self, molecules: MoleculeFeatures) -> csr_array:
        return count_fingerprints(molecules.molecules, self.kinds)


def morgan(molecules: MoleculeFeatures) -> csr_array:
    """Morgan counts, from counts of several kinds that are known already: uint16 [M, SIZE]."""
    known = next((view for view in molecules.computed if isinstance(view, Counts)), Counts())
    start = known.kinds.index(MORGAN) * SIZE
    return molecules.of(known)[:, start : start + SIZE]


def descriptors(molecules: MoleculeFeatures) -> np.ndarray:
    """``fast_descriptors`` of molecules: float32 [M, D]."""
    return fast_descriptors(molecules.molecules)


def looks(molecules: MoleculeFeatures) -> np.ndarray:
    """``look_at`` of molecules: ``Look`` [M]."""
    return as_objects([look_at(molecule_of(molecule)) for molecule in molecules.molecules])


def as_objects(found: list[Look]) -> np.ndarray:
    array = np.empty(len(found), object)
    array[:] = found
    return array


def graph_of(featurizer: str, molecule: Molecule) -> MoleculeGraph:
    """The graph of a molecule; raises InputError for one that cannot be read."""
    written = molecule if isinstance(molecule, str) else ""
    mol = molecule_of(molecule)
    with one_molecule(written):
        return FEATURIZERS[featurizer].features(mol, written)


@dataclass(frozen=True)
class ChunkFeatures:
    graphs: list[MoleculeGraph]
    counts: csr_array
    descriptors: np.ndarray
    looks: list[Look]


def read_chunk(featurizer: str, smiles: Smiles) -> ChunkFeatures:
    mols = [molecule_of(text) for text in smiles]
    graphs = []
    for mol, text in zip(mols, smiles, strict=True):
        with one_molecule(text or ""):
            graphs.append(FEATURIZERS[featurizer].features(mol, text or ""))
    return ChunkFeatures(graphs, count_fingerprints(mols), fast_descriptors(mols), [look_at(mol) for mol in mols])
