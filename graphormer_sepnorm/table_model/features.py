"""Molecular features that members read. Each kind is computed once, on first use.

Axis letters: M molecules, D descriptors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from rdkit import Chem
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
        if view not in self.computed:
            self.computed[view] = self.shared[view] if view in self.shared else view(self)
            if isinstance(view, Counts) or view is descriptors:
                self.shared[view] = self.computed[view]
        return self.computed[view]

    def take(self, rows: np.ndarray) -> "MoleculeFeatures":
        kept = self.computed.items()
        computed = {view: each.take(rows) if isinstance(each, Graphs) else each[rows] for view, each in kept}
        return MoleculeFeatures([self.molecules[row] for row in rows.tolist()], computed)

    def read(self, featurizer: str) -> None:
        graphs = GraphsOf(as_written(featurizer))
        if {graphs, Counts(), descriptors, looks} <= self.computed.keys():
            return
        work = partial(read_chunk, graphs.featurizer)
        chunks = -(-len(self.molecules) // CHUNK)
        parts = [part for _, part in tracked(map_chunks(work, in_chunks(self.molecules, CHUNK), list), chunks)]
        found, counts, described, seen = zip(*parts, strict=True) if parts else ((), (), (), ())
        self.computed[graphs] = graphs.packed(list(chain(*found)))
        self.computed[Counts()] = csr_array(vstack([count_fingerprints([]), *counts], "csr"))
        self.computed[descriptors] = np.concatenate([fast_descriptors([]), *described])
        self.computed[looks] = np.fromiter(chain(*seen), object)


@dataclass(frozen=True)
class GraphsOf:
    """The graphs of molecules by a featurizer that does not standardize them."""

    featurizer: str

    def __call__(self, molecules: MoleculeFeatures) -> Graphs:
        written = [molecule if isinstance(molecule, str) else "" for molecule in molecules.molecules]
        mols = map(molecule_of, molecules.molecules)
        return self.packed([graph_of(self.featurizer, *each) for each in zip(mols, written, strict=True)])

    def packed(self, graphs: list[MoleculeGraph]) -> Graphs:
        return FEATURIZERS[self.featurizer].pack(graphs)


@dataclass(frozen=True)
class Counts:
    kinds: Kinds = KINDS

    def __call__(self, molecules: MoleculeFeatures) -> csr_array:
        return count_fingerprints(molecules.molecules, self.kinds)


def morgan(molecules: MoleculeFeatures) -> csr_array:
    """Morgan counts, from counts of several kinds that are known already: uint16 [M, SIZE]."""
    known = next((view for view in molecules.computed if isinstance(view, Counts)), Counts())
    start = known.kinds.index(MORGAN) * SIZE
    return molecules.of(known)[:, start : start + SIZE]


def descriptors(molecules: MoleculeFeatures) -> np.ndarray:
    return fast_descriptors(molecules.molecules)


def looks(molecules: MoleculeFeatures) -> np.ndarray:
    return np.fromiter((look_at(molecule_of(each)) for each in molecules.molecules), object)


def graph_of(featurizer: str, mol: Chem.Mol, written: str) -> MoleculeGraph:
    """The graph of a molecule; raises InputError for one that cannot be read."""
    with one_molecule(written):
        return FEATURIZERS[featurizer].features(mol, written)


def read_chunk(featurizer: str, smiles: Smiles) -> tuple[list[MoleculeGraph], csr_array, np.ndarray, list[Look]]:
    """Graphs, counts, descriptors and looks of a chunk of SMILES, each parsed once."""
    mols = [molecule_of(text) for text in smiles]
    graphs = [graph_of(featurizer, mol, text or "") for mol, text in zip(mols, smiles, strict=True)]
    return graphs, count_fingerprints(mols), fast_descriptors(mols), [look_at(mol) for mol in mols]
