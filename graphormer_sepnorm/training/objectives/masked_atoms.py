"""Pretraining on molecules some of whose atoms are masked.

Sources: Hu et al., "Strategies for Pre-training Graph Neural Networks", ICLR 2020, for masking all features of 15 % of
the atoms and leaving the bonds visible. They classify each masked atom from its own output. Here the head reads the
CLS, because the CLS is the embedding that is used later. It predicts how many atoms of each type the whole molecule
has, as a denoising autoencoder predicts its input before corruption (Vincent et al., "Extracting and Composing Robust
Features with Denoising Autoencoders", ICML 2008). The CLS can add up the visible atoms; it has to infer the masked
ones.

Axis letters: M molecules, T atoms, F feature columns.
"""

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
from graphormer_sepnorm.training.objectives.base import Corpus, Pretraining
from graphormer_sepnorm.training.objectives.fingerprints import Counts, corpus_of_counts, count_each
from graphormer_sepnorm.training.objectives.labels import LabelObjective

SHARE = 0.15
MASK = 0  # of every feature; an atom without element and with charge -4 does not occur


class MaskedLabels(LabelObjective):
    """Learns the labels of molecules from their graphs with masked atoms.

    Each atom is masked with probability ``SHARE``: all its features, such as its element, charge and hydrogens, are
    ``MASK``. Its bonds remain visible, with their orders and whether they are conjugated or in a ring. So do the
    degrees, distances and rings of the encodings, and the features of its neighbours: their hybridization may depend on
    it.

    Args:
        task, train, device: as for ``LabelObjective``; atoms of ``train`` are masked again in each batch.
        val: as for ``LabelObjective``; the same atoms are masked for each score.
    """

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        super().__init__(task, train, with_masked_atoms(val), device)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        """As ``LabelObjective.loss``, with masked atoms."""
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
        """As ``corpus_of_counts``; nothing is cached."""
        return corpus_of_counts(*count_each(atom_types, smiles))


def atom_types(smiles: str) -> Counts:
    """Number of atoms with each row of features [F], as in ``mol_atom``; raises InputError as ``Featurizer.graph``."""
    rows = FEATURIZERS[FOR_TABLES].graph(smiles).x.tolist()
    return Counter(f"atom {' '.join(map(str, row))}" for row in rows)
