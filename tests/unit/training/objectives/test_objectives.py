"""The contract of pretraining objectives: they find targets in molecules and learn them."""

from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.chem.features import FOR_TABLES
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import foundation_small, task_config
from graphormer_sepnorm.runs.checkpoint import load_model, save_model
from graphormer_sepnorm.runs.folder import WEIGHTS
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.training.objectives import OBJECTIVES, find_objective
from graphormer_sepnorm.training.objectives.base import Corpus
from graphormer_sepnorm.training.pretrain import prepared
from graphormer_sepnorm.training.trainer import Trainer

SMILES = [*sample_table().smiles[:12], "C(C", ""]


@pytest.fixture(scope="module", params=OBJECTIVES)
def objective(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield OBJECTIVES[request.param]


@pytest.fixture(scope="module")
def corpus(objective) -> Corpus:
    return objective.corpus(list(SMILES))


def tiny(atom_sizes, bond_sizes, num_tasks):
    shape = foundation_small(atom_sizes, bond_sizes, num_tasks)
    return replace(shape, layers=2, width=32, ffn_width=32, heads=4, bias_hidden=8, attention_dropout=0.0)


@pytest.fixture(scope="module")
def trained(objective, corpus):
    """A trainer and its epochs, with forty passes over twelve molecules."""
    train = TrainConfig(epochs=40, batch_size=6, lr=1e-2, optimizer="muon", clip_norm=1.0)
    config = task_config("these tests", FOR_TABLES, objective.task(corpus.targets), train, None, tiny)
    data = prepared(corpus, config, "contract")
    trainer = Trainer(config, data, data, make_objective=objective.objective)
    return trainer, list(trainer.epochs())


def test_a_corpus_has_the_molecules_that_can_be_read_and_their_labels(corpus):
    assert corpus.smiles == SMILES[:12]
    assert corpus.y.dtype == np.float32 and corpus.y.shape == (12, len(corpus.targets))
    assert not np.isinf(corpus.y).any() and len(set(corpus.targets)) == len(corpus.targets) > 0
    assert np.nanmax(np.abs(corpus.y), initial=0) < 10
    part = corpus.take(np.array([3, 1]))
    assert part.smiles == [SMILES[3], SMILES[1]] and np.array_equal(part.y, corpus.y[[3, 1]], equal_nan=True)


def test_molecules_can_be_memorized(trained):
    trainer, epochs = trained
    assert epochs[-1].train_loss < 0.3 * epochs[0].train_loss
    assert trainer.progress.best_epoch > 20 and trainer.objective.improves(epochs[-1].val_metric, epochs[0].val_metric)
    assert trainer.objective.improves(epochs[0].val_metric, None)


def test_a_batch_counts_each_of_its_molecules(trained):
    counts = trained[0].objective.counts(np.array([4, 2, 7]))
    assert len(counts) == 3 and (counts.reshape(3, -1).sum(dim=1) > 0).all()


def test_a_pretrained_network_loads_like_any_other(trained, corpus, tmp_path):
    trainer, _ = trained
    save_model(tmp_path / WEIGHTS, trainer.model, trainer.config, {"epoch": 40})
    model, config, _ = load_model(tmp_path)
    assert config.task.targets == corpus.targets and model.config.num_tasks == len(corpus.targets)


def test_an_unknown_objective_is_refused_with_the_known_names():
    assert find_objective("descriptors") is OBJECTIVES["descriptors"]
    with pytest.raises(InputError, match="unknown objective 'dreams', choose one of descriptors"):
        find_objective("dreams")
