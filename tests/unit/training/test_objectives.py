"""The contract of pretraining objectives: they find targets in molecules and learn them; and each one by hand."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.descriptors import NAMES
from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.config import TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import load_split, read_sample, sample_table
from graphormer_sepnorm.datasets.store import MoleculeDataset, in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_dataset
from graphormer_sepnorm.recipes import Recipe, foundation_small, task_config
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from graphormer_sepnorm.tasks import METRICS, make_task
from graphormer_sepnorm.training.objectives import (
    CLIP,
    OBJECTIVES,
    Corpus,
    LabelObjective,
    MaskedLabels,
    atom_types,
    corpus_of_counts,
    corpus_of_descriptors,
    teacher,
    with_masked_atoms,
)
from graphormer_sepnorm.training.pretrain import prepared_corpus, split_corpus
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness.tiny_run import tiny_config

NAN = float("nan")
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
    train = TrainConfig(epochs=40, batch_size=6, lr=1e-2, optimizer="muon", clip_norm=1.0)
    config = task_config("these tests", FOR_TABLES, objective.task(corpus.targets), Recipe(tiny, train))
    data = prepared_corpus(corpus, config, "contract")
    trainer = Trainer(config, data, data, make_objective=objective.objective)
    return trainer, list(trainer.epochs())


def test_a_corpus_has_the_molecules_that_can_be_read_and_their_labels(corpus):
    assert corpus.smiles == SMILES[:12]
    assert corpus.y.dtype == np.float32 and corpus.y.shape == (12, len(corpus.targets))
    assert not np.isinf(corpus.y).any() and len(set(corpus.targets)) == len(corpus.targets) > 0
    assert np.nanmax(np.abs(corpus.y), initial=0) < 10
    part = corpus.take(np.array([3, 1]))
    assert part.smiles == [SMILES[3], SMILES[1]] and np.array_equal(part.y, corpus.y[[3, 1]], equal_nan=True)


@pytest.mark.slow
def test_molecules_can_be_memorized(trained):
    trainer, epochs = trained
    assert epochs[-1].train_loss < 0.3 * epochs[0].train_loss
    assert trainer.progress.best_epoch > 20 and trainer.objective.improves(epochs[-1].val_metric, epochs[0].val_metric)
    assert trainer.objective.improves(epochs[0].val_metric, None)


@pytest.mark.parametrize(("rows", "sentence"), [(2, "2 molecules can be read"), (4, "nothing to learn")])
def test_too_little_to_learn_from(rows, sentence):
    with pytest.raises(InputError, match=sentence):
        corpus_of_descriptors(["C"] * rows, np.zeros((rows, len(NAMES))))


def test_targets_are_chosen_by_hand():
    values = np.full((101, len(NAMES)), 7.0, np.float32)
    values[:100, 0] = [0.0, 2.0] * 50
    values[:100, 1] = [0.0] * 99 + [1.0]  # 9.9 deviations from the mean
    values[:100, 2] = [0.0, 1e7] * 50
    values[:10, 3] = NAN
    values[:50, 4] = 1.0
    values[0, 4] = NAN
    values[100] = NAN
    corpus = corpus_of_descriptors([str(i) for i in range(101)], values)
    assert corpus.smiles == [str(i) for i in range(100)]
    assert corpus.targets == (NAMES[0], NAMES[1], NAMES[4])
    assert corpus.y[:2, 0].tolist() == [-1.0, 1.0]
    assert corpus.y[99, 1] == 6.0 and corpus.y[0, 1] == pytest.approx(-0.01 / 0.0995, abs=1e-3)
    assert np.isnan(corpus.y[0, 2]) and np.nanmean(corpus.y[:, 2]) == pytest.approx(0, abs=1e-6)


def test_counts_are_scaled_by_hand():
    corpus = corpus_of_counts(["C", "N", "O"], [{"a": 3, "b": 5}, {"a": 1, "b": 5}, {"b": 5}])
    assert corpus.smiles == ["C", "N", "O"] and corpus.targets == ("a",), "b is the same for all"
    np.testing.assert_allclose(corpus.y[:, 0], [1.5**0.5, 0, -(1.5**0.5)], atol=1e-6)  # binary logarithms 2, 1 and 0
    assert corpus.y.dtype == np.float32


def test_rare_counts_are_left_out_and_far_ones_clipped():
    counts = [{"in one": 1, "in two": 1}, {"in two": 1}, *[{}] * 198]
    corpus = corpus_of_counts(["C"] * 200, counts)
    assert corpus.targets == ("in two",)
    assert corpus.y[:2, 0].tolist() == [CLIP, CLIP], "9.9 deviations from the mean"
    assert corpus.y[2, 0] == pytest.approx(-0.1005, abs=1e-4)


def test_atom_types_are_counted_by_hand():
    # Element, CIP label, bonds with hydrogens, charge + 4, hydrogens, unpaired electrons, hybridization, aromatic and
    # smallest ring - 2.
    assert atom_types("CO") == {"atom 6 0 4 4 3 0 4 0 0": 1, "atom 8 0 2 4 1 0 4 0 0": 1}
    assert atom_types("c1ccccc1") == {"atom 6 0 3 4 1 0 3 1 4": 6}
    assert atom_types("C[NH3+]") == {"atom 6 0 4 4 3 0 4 0 0": 1, "atom 7 0 4 5 3 0 4 0 0": 1}


def test_the_corpus_has_the_types_that_differ():
    corpus = OBJECTIVES["masked-atoms"].corpus(["CO", "C(", "CN", "CO"])
    assert corpus.smiles == ["CO", "CN", "CO"]
    assert corpus.targets == ("atom 7 0 3 4 2 0 4 0 0", "atom 8 0 2 4 1 0 4 0 0"), "all have one methyl group"
    np.testing.assert_allclose(corpus.y, np.array([[-1, 1], [2, -2], [-1, 1]]) / np.sqrt(2), rtol=1e-6)
    task = OBJECTIVES["masked-atoms"].task(corpus.targets)
    assert (task.kind, task.loss, task.metric, task.targets) == ("regression", "mse", "mae", corpus.targets)


@pytest.fixture
def path(tmp_path):
    """Embeddings of five molecules, as written by the command embed; one of them could not be read."""
    values = np.array([[1, 5, 0], [3, 5, 0], [NAN] * 3, [1, 5, 0], [3, 5, 100]], np.float32)
    smiles = np.array(["C", "CC", "C(", "CCC", "CCCC"])
    np.savez_compressed(tmp_path / "t.npz", embeddings=values, row=np.arange(5), smiles=smiles, error=smiles)
    return tmp_path / "t.npz"


def test_labels_are_the_numbers_that_differ_in_standard_deviations(path):
    learnt = teacher(path)
    corpus = learnt.corpus(["CC", "N", "C", "C(", "CCC", "CC"])
    assert corpus.smiles == ["CC", "C", "CCC", "CC"]
    assert corpus.targets == ("teacher 0",), "the others are the same for all"
    assert corpus.y.dtype == np.float32 and corpus.y.tolist() == [[1.0], [-1.0], [-1.0], [1.0]]
    task = learnt.task(corpus.targets)
    assert (task.kind, task.metric, task.loss, task.targets) == ("regression", "mae", "mse", ("teacher 0",))
    assert learnt.title == "the embeddings in t.npz"


def test_embeddings_of_other_molecules_are_refused(path):
    with pytest.raises(InputError, match="embeddings of 2 of the 4 molecules"):
        teacher(path).corpus(["C", "CC", "N", "O"])
    with pytest.raises(InputError, match="the same embedding"):
        teacher(path).corpus(["C", "C", "CCC"])


def test_a_file_without_embeddings_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("smiles\nC\n")
    np.savez(tmp_path / "other.npz", values=np.zeros(3))
    np.savez(tmp_path / "short.npz", embeddings=np.zeros((3, 2)), smiles=np.array(["C"]))
    np.save(tmp_path / "array.npy", np.zeros((3, 2)))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    none = dict.fromkeys(("array", "text", "other"), "no embeddings")
    for name, message in (none | {"short": "for each", "no": "read"}).items():
        with pytest.raises(InputError, match=message):
            teacher(tmp_path / f"{name}.npz")


def test_validation_is_a_random_fiftieth_and_at_least_one_molecule():
    corpus = Corpus([str(number) for number in range(1000)], ("y",), np.arange(1000, dtype=np.float32)[:, None])
    train, val = split_corpus(corpus, seed=0)
    assert (len(train.smiles), len(val.smiles)) == (980, 20)
    assert sorted(train.smiles + val.smiles) == sorted(corpus.smiles)
    assert all(part.smiles == [str(int(y)) for y in part.y[:, 0]] for part in (train, val))
    assert split_corpus(corpus, seed=1)[1].smiles != val.smiles
    assert len(split_corpus(corpus.take(np.arange(3)), seed=0)[1].smiles) == 1


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


@pytest.mark.slow
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


SCRIPT = Path(__file__).parents[3] / "data" / "make_corpus.py"


@pytest.mark.slow
def test_each_molecule_occurs_once_and_held_out_ones_do_not(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,split\nCCO,train\nOCC,train\nCCN,val\nCCC,train\nC(,train\nC,train\n")
    (tmp_path / "b.csv").write_text("smiles\nCC[NH3+]\nCCS\nC[C@H](O)Cl\nc1ccccc1\n")
    (tmp_path / "c.csv").write_text("smiles,y,split\nC[C@@H](O)Cl,1,train\n")
    files = ["--take", tmp_path / "a.csv", "--take", tmp_path / "b.csv", "--hold", tmp_path / "c.csv"]
    for out in ("one.smi", "two.smi"):
        subprocess.run([sys.executable, SCRIPT, tmp_path / out, *files], check=True)
    lines = (tmp_path / "one.smi").read_text().splitlines()
    assert sorted(lines) == ["CCC", "CCO", "CCS", "c1ccccc1"] and lines != sorted(lines)
    assert (tmp_path / "two.smi").read_text().splitlines() == lines
