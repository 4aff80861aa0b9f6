from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.datasets.benchmarks import load_split, read_sample
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.recipes import foundation_small
from graphormer_sepnorm.tasks import METRICS, make_task
from graphormer_sepnorm.training.objectives import LabelObjective, MaskedLabels, with_masked_atoms
from tests.robustness.tiny_run import tiny_config

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def splits():
    encodings = tiny_config().model.encodings
    return load_split("tiny", "train", encodings), load_split("tiny", "val", encodings)


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return Network(tiny_config().model).eval()


def test_the_scale_is_that_of_the_training_labels(splits):
    train, val = splits
    fitted = LabelObjective(tiny_config().task, train, val, CPU).task
    np.testing.assert_allclose(fitted.mean, np.nanmean(train.y, axis=0), rtol=1e-6)
    np.testing.assert_allclose(fitted.std, np.nanstd(train.y, axis=0), rtol=1e-6)


def test_positives_are_weighted_by_sample_weights():
    graphs = read_sample("val", Path()).take(np.arange(4))
    y, weight = np.array([[1], [0], [0], [0]], np.float32), np.array([0.5, 1, 1, 0], np.float32)
    known = in_memory(replace(graphs, weight=weight).with_targets(y), ())
    task = TaskConfig("classification", "rocauc", ("a",), balance=True)
    assert LabelObjective(task, known, known, CPU).task.pos_weight == (4.0,), "2 against 0.5"


def test_loss_and_score_are_those_of_the_task(splits, network):
    train, val = splits
    labels = LabelObjective(tiny_config().task, train, val, CPU)
    batch, task = train.batch(np.arange(9)), make_task(labels.task)
    assert labels.loss(network, batch).equal(task.loss(network(batch), batch.y))
    assert labels.score(network) == METRICS["mae"](val.y, predict_dataset(network, val, task))
    assert labels.improves(0.4, 0.5) and not labels.improves(0.5, 0.4)


def test_each_label_has_the_weight_of_its_target(splits):
    train, val = splits
    task = replace(tiny_config().task, weights=(1.0, 0.5))
    counts = LabelObjective(task, train, val, CPU).counts(np.array([0, 1]))
    assert counts.tolist() == [[1.0, 0.0], [1.0, 0.5]]  # every third label of the second target is missing


def test_non_finite_predictions_are_reported(splits):
    broken = Network(tiny_config().model).eval()
    with torch.no_grad():
        broken.head[2].bias.fill_(torch.nan)
    with pytest.raises(InputError, match=r"predictions for validation molecules \[0, 1, 2.* are not finite"):
        LabelObjective(tiny_config().task, *splits, CPU).score(broken)


TASK = TaskConfig("regression", "mae", ("y",), loss="mse")
SIZES = FEATURIZERS[FOR_TABLES].atom_sizes, FEATURIZERS[FOR_TABLES].bond_sizes
SHAPE = replace(foundation_small(*SIZES, 1), layers=2, attention_layers=1, width=16, ffn_width=16, heads=2)
OTHERS = {"CCO": "CCN", "CCCO": "CCCS", "CC=O": "CC=S", "CC(C)O": "CC(C)Cl"}  # as far as the last atom


def molecules(*smiles: str) -> MoleculeDataset:
    featurizer = FEATURIZERS[FOR_TABLES]
    graphs = featurizer.pack([featurizer.graph(text) for text in smiles])
    return in_memory(graphs.with_targets(np.arange(len(smiles), dtype=np.float32)[:, None]), SHAPE.encodings)


@pytest.fixture(scope="module")
def small() -> Network:
    torch.manual_seed(0)
    return Network(SHAPE).eval()


@pytest.fixture
def output(small, monkeypatch):
    """The output of the network in the loss of a batch whose last atom is masked, or whose atoms are."""

    def find(smiles, all_atoms=False):
        data, seen = molecules(smiles, "C"), []
        objective = MaskedLabels(TASK, data, data, CPU)
        batch = data.batch([0])
        draw = torch.tensor([0.0 if all_atoms else 0.15] * (batch.num_atoms - 1) + [0.149])
        monkeypatch.setattr(torch, "rand", lambda *shape, device: draw)
        objective.loss(lambda batch: seen.append(small(batch)) or seen[0], batch)
        return seen[0]

    return find


@pytest.mark.parametrize("smiles", OTHERS)
def test_the_output_does_not_depend_on_a_masked_atom(smiles, output, small):
    assert output(smiles).equal(output(OTHERS[smiles]))
    visible = [small(molecules(text).batch([0])) for text in (smiles, OTHERS[smiles])]
    assert not torch.allclose(*visible)


def test_bonds_and_other_atoms_remain_visible(output):
    assert not torch.allclose(output("CCO"), output("CC=O"))
    assert not torch.allclose(output("CCO", all_atoms=True), output("CC=O", all_atoms=True))
    assert not torch.allclose(output("CCO"), output("OCO"))
    assert output("CCO", all_atoms=True).equal(output("NCS", all_atoms=True))


def test_the_loss_is_that_of_the_labels_where_nothing_is_masked(small, monkeypatch):
    data = molecules("CCO", "CC=O", "CN")
    masked, plain = (kind(TASK, data, data, CPU) for kind in (MaskedLabels, LabelObjective))
    batch = data.batch([0, 1, 2])
    with monkeypatch.context() as patch:
        patch.setattr(torch, "rand", lambda *shape, device: torch.full(shape, 0.15))
        assert masked.loss(small, batch).equal(plain.loss(small, batch))
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


def test_the_atoms_masked_for_the_score_are_always_the_same(small):
    data = molecules(*["CCCCCCCCCO", "CCNCCCCCCC"] * 10)
    masked = with_masked_atoms(data)
    before, after = data.shards[0].x, masked.shards[0].x
    hidden = (after == 0).all(axis=1)
    assert 0.05 < hidden.mean() < 0.25 and after.dtype == before.dtype
    assert np.array_equal(after[~hidden], before[~hidden]) and (before != 0).any(axis=1).all()
    objective = MaskedLabels(TASK, data, data, CPU)
    assert objective.score(small) == objective.score(small) == LabelObjective(TASK, data, masked, CPU).score(small)
    assert objective.score(small) != LabelObjective(TASK, data, data, CPU).score(small)
