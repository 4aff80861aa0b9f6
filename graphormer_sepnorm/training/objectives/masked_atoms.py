"""Pretraining on molecules with masked atoms (Hu et al., ICLR 2020): the CLS predicts all atom types of a molecule."""

from collections import Counter
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.training.objectives.base import Corpus, LabelObjective, Pretraining
from graphormer_sepnorm.training.objectives.fingerprints import Counts, corpus_of_counts, count_each

SHARE = 0.15
MASK = 0  # of every feature; an atom without element and with charge -4 does not occur


class MaskedLabels(LabelObjective):
    """Learns labels from graphs with masked atoms, but visible bonds; those of validation are always the same."""

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        super().__init__(task, train, with_masked_atoms(val), device)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        masked = torch.rand(batch.num_atoms, device=batch.x.device) < SHARE
        return super().loss(network, replace(batch, x=batch.x.masked_fill(masked[:, None], MASK)))


def with_masked_atoms(molecules: MoleculeDataset) -> MoleculeDataset:
    """The molecules with the features of some atoms masked, always the same ones."""
    random = np.random.default_rng(0)
    shards = [(shard, random.random(len(shard.x)) < SHARE) for shard in molecules.shards]
    return MoleculeDataset([replace(shard, x=np.where(masked[:, None], MASK, shard.x)) for shard, masked in shards])


class MaskedAtoms(Pretraining):
    """Predicts the number of atoms of each type in the whole molecule, as ``corpus_of_counts``, with atoms masked."""

    title = "atom types of molecules with masked atoms"
    objective = MaskedLabels

    def corpus(self, smiles: list[str]) -> Corpus:
        return corpus_of_counts(*count_each(atom_types, smiles))


def atom_types(smiles: str) -> Counts:
    """Number of atoms with each row of features [F], as in ``mol_atom``; raises InputError as ``Featurizer.graph``."""
    rows = FEATURIZERS[FOR_TABLES].graph(smiles).x.tolist()
    return Counter(f"atom {' '.join(map(str, row))}" for row in rows)
