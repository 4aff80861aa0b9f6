from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import foundation_small
from graphormer_sepnorm.training.objectives.base import LabelObjective
from graphormer_sepnorm.training.objectives.masked_atoms import MaskedAtoms, MaskedLabels, atom_types, with_masked_atoms

CPU = torch.device("cpu")
TASK = TaskConfig("regression", "mae", ("y",), loss="mse")
SIZES = FEATURIZERS[FOR_TABLES].atom_sizes, FEATURIZERS[FOR_TABLES].bond_sizes
SHAPE = replace(foundation_small(*SIZES, 1), layers=2, attention_layers=1, width=16, ffn_width=16, heads=2)
OTHERS = {"CCO": "CCN", "CCCO": "CCCS", "CC=O": "CC=S", "CC(C)O": "CC(C)Cl"}  # as far as the last atom


def molecules(*smiles: str) -> MoleculeDataset:
    featurizer = FEATURIZERS[FOR_TABLES]
    graphs = featurizer.pack([featurizer.graph(text) for text in smiles])
    return in_memory(graphs.with_targets(np.arange(len(smiles), dtype=np.float32)[:, None]), SHAPE.encodings)


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return Network(SHAPE).eval()


@pytest.fixture
def output(network, monkeypatch):
    """The output of the network in the loss of a batch whose last atom is masked, or whose atoms are."""

    def find(smiles, all_atoms=False):
        data, seen = molecules(smiles, "C"), []
        objective = MaskedLabels(TASK, data, data, CPU)
        batch = data.batch([0])
        draw = torch.tensor([0.0 if all_atoms else 0.15] * (batch.num_atoms - 1) + [0.149])
        monkeypatch.setattr(torch, "rand", lambda *shape, device: draw)
        objective.loss(lambda batch: seen.append(network(batch)) or seen[0], batch)
        return seen[0]

    return find


@pytest.mark.parametrize("smiles", OTHERS)
def test_the_output_does_not_depend_on_a_masked_atom(smiles, output, network):
    assert output(smiles).equal(output(OTHERS[smiles]))
    visible = [network(molecules(text).batch([0])) for text in (smiles, OTHERS[smiles])]
    assert not torch.allclose(*visible)


def test_bonds_and_other_atoms_remain_visible(output):
    assert not torch.allclose(output("CCO"), output("CC=O"))
    assert not torch.allclose(output("CCO", all_atoms=True), output("CC=O", all_atoms=True))
    assert not torch.allclose(output("CCO"), output("OCO"))
    assert output("CCO", all_atoms=True).equal(output("NCS", all_atoms=True))


def test_the_loss_is_that_of_the_labels_where_nothing_is_masked(network, monkeypatch):
    data = molecules("CCO", "CC=O", "CN")
    masked, plain = (kind(TASK, data, data, CPU) for kind in (MaskedLabels, LabelObjective))
    batch = data.batch([0, 1, 2])
    with monkeypatch.context() as patch:
        patch.setattr(torch, "rand", lambda *shape, device: torch.full(shape, 0.15))
        assert masked.loss(network, batch).equal(plain.loss(network, batch))
    assert masked.counts(np.array([0, 2])).equal(plain.counts(np.array([0, 2])))
    assert batch.x.equal(data.batch([0, 1, 2]).x), "the batch is left as it is"


def test_another_seventh_of_the_atoms_is_masked_in_each_batch():
    torch.manual_seed(0)
    data, seen = molecules(*["C" * 100] * 20), []
    objective = MaskedLabels(TASK, data, data, CPU)
    for _ in range(2):
        objective.loss(lambda batch: seen.append(batch.x) or torch.zeros(20, 1), data.batch(np.arange(20)))
    masked, again = ((x == 0).all(dim=1) for x in seen)
    assert 0.12 < masked.float().mean() < 0.18, "2,000 atoms: 0.15 with a standard error of 0.008"
    assert not masked.equal(again)
    assert seen[0][~masked].equal(data.batch(np.arange(20)).x[~masked]) and seen[0].dtype == torch.uint8


def test_the_atoms_masked_for_the_score_are_always_the_same(network):
    data = molecules(*["CCCCCCCCCO", "CCNCCCCCCC"] * 10)
    masked = with_masked_atoms(data)
    before, after = data.shards[0].x, masked.shards[0].x
    hidden = (after == 0).all(axis=1)
    assert 0.05 < hidden.mean() < 0.25 and after.dtype == before.dtype
    assert np.array_equal(after[~hidden], before[~hidden]) and (before != 0).any(axis=1).all()
    objective = MaskedLabels(TASK, data, data, CPU)
    assert (
        objective.score(network) == objective.score(network) == LabelObjective(TASK, data, masked, CPU).score(network)
    )
    assert objective.score(network) != LabelObjective(TASK, data, data, CPU).score(network)


def test_atom_types_are_counted_by_hand():
    # Element, CIP label, bonds with hydrogens, charge + 4, hydrogens, unpaired electrons, hybridization, aromatic and
    # smallest ring - 2.
    assert atom_types("CO") == {"atom 6 0 4 4 3 0 4 0 0": 1, "atom 8 0 2 4 1 0 4 0 0": 1}
    assert atom_types("c1ccccc1") == {"atom 6 0 3 4 1 0 3 1 4": 6}
    assert atom_types("C[NH3+]") == {"atom 6 0 4 4 3 0 4 0 0": 1, "atom 7 0 4 5 3 0 4 0 0": 1}


def test_the_corpus_has_the_types_that_differ():
    corpus = MaskedAtoms().corpus(["CO", "C(", "CN", "CO"])
    assert corpus.smiles == ["CO", "CN", "CO"]
    assert corpus.targets == ("atom 7 0 3 4 2 0 4 0 0", "atom 8 0 2 4 1 0 4 0 0"), "all have one methyl group"
    np.testing.assert_allclose(corpus.y, np.array([[-1, 1], [2, -2], [-1, 1]]) / np.sqrt(2), rtol=1e-6)
    task = MaskedAtoms().task(corpus.targets)
    assert (task.kind, task.loss, task.metric, task.targets) == ("regression", "mse", "mae", corpus.targets)
