"""Training objectives: the loss to minimize, and the score that selects an epoch. Pretraining finds its own labels."""

import contextlib
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors
from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES
from graphormer_sepnorm.chem.fingerprints import morgan_counts
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TEACHER, TaskConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, locked_folder
from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import predict_together
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.tasks import make_task

CLIP = 6.0  # standard deviations
FEWEST = 3  # molecules
ABSURD = 1e6  # descriptor
MOST_MISSING = 0.05  # of the values of a descriptor
LEAST_SHARE = 0.01  # of the molecules, with a count
MASKED = 0.15  # of the atoms
MASK = 0  # of every feature; an atom without element and with charge -4 does not occur
Counts = Mapping[str, int]


class LabelObjective:
    """A training objective on two splits, without parameters, as the head makes all predictions: to learn labels.

    Attributes:
        task: fitted to the training split.
    """

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        unfitted = make_task(task)
        unfitted.check_learnable(train.y)
        unfitted.check_scorable(val.y, "validation")
        self.task = unfitted.fitted(train.y, train.per_molecule.get("weight"))
        self.train, self.val = train, val
        self.here = make_task(self.task, device)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        """The mean loss [] over a batch of the training split, in float32; random numbers are PyTorch's."""
        assert batch.y is not None
        return self.here.loss(network(batch).float(), batch.y, batch.bounds, batch.weight)

    def counts(self, molecules: np.ndarray) -> Tensor:
        """Weight of each training molecule with these indices in the mean loss: [B, tasks]."""
        bounds, weight = (self.train.of_molecules(name, molecules) for name in ("bounds", "weight"))
        return make_task(self.task).counts(torch.from_numpy(self.train.y[molecules]), bounds, weight)

    def score(self, network: Network) -> float:
        """On the validation split, by all processes together; raises InputError if a prediction is not finite."""
        prediction = predict_together(network, self.val, self.here)
        wrong = np.flatnonzero(~np.isfinite(prediction).all(axis=1))
        if len(wrong):
            raise InputError(f"the predictions for validation molecules {wrong[:10].tolist()} are not finite")
        return self.here.metric(self.val.y, prediction)

    def improves(self, score: float, best: float | None) -> bool:
        """Whether a score is better than the best one so far; None: there is none yet."""
        return self.here.metric.improves(score, best)


class MaskedLabels(LabelObjective):
    """Learns labels from graphs with masked atoms, but visible bonds; those of validation are always the same."""

    def __init__(self, task: TaskConfig, train: MoleculeDataset, val: MoleculeDataset, device: torch.device):
        super().__init__(task, train, with_masked_atoms(val), device)

    def loss(self, network: Network, batch: GraphBatch) -> Tensor:
        masked = torch.rand(batch.num_atoms, device=batch.x.device) < MASKED
        return super().loss(network, replace(batch, x=batch.x.masked_fill(masked[:, None], MASK)))


def with_masked_atoms(molecules: MoleculeDataset) -> MoleculeDataset:
    """The molecules with the features of some atoms masked, always the same ones."""
    random = np.random.default_rng(0)
    shards = [(shard, random.random(len(shard.x)) < MASKED) for shard in molecules.shards]
    return MoleculeDataset([replace(shard, x=np.where(masked[:, None], MASK, shard.x)) for shard, masked in shards])


@dataclass(frozen=True)
class Corpus:
    smiles: list[str]
    targets: tuple[str, ...]  # names of the outputs of the head
    y: np.ndarray  # float32 [M, targets] with about unit scale, NaN where missing

    def take(self, rows: np.ndarray) -> "Corpus":
        return Corpus([self.smiles[row] for row in rows], self.targets, self.y[rows])


@dataclass(frozen=True)
class Pretraining:
    title: str  # what the model learns to predict
    corpus: Callable[[list[str]], Corpus]  # the readable molecules; raises InputError if they are few or the same
    objective: type[LabelObjective] = LabelObjective

    def task(self, targets: tuple[str, ...]) -> TaskConfig:
        """The task of the network; its metric selects the epoch."""
        return TaskConfig("regression", "mae", targets, loss="mse")


def standardized_corpus(smiles: list[str], names: Sequence[str], values: np.ndarray, what: str) -> Corpus:
    """The corpus of labels in standard deviations from their mean, clipped; raises InputError if there are none."""
    if not len(names):
        raise InputError(f"all molecules have the same {what}: there is nothing to learn")
    values = values.astype(np.float64)
    mean, std = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    return Corpus(smiles, tuple(names), ((values - mean) / std).clip(-CLIP, CLIP).astype(np.float32))


def check_number(molecules: int) -> None:
    if molecules < FEWEST:
        raise InputError(f"{molecules} molecules can be read; pre-training needs many thousands")


def descriptors_of(smiles: list[str]) -> Corpus:
    """RDKit's descriptors, as CheMeleon learns Mordred's (Burns et al., 2025)."""
    folder = cache_root() / "descriptors"
    with locked_folder(folder):
        return corpus_of_descriptors(smiles, all_descriptors([*smiles], folder))


def corpus_of_descriptors(smiles: list[str], values: np.ndarray) -> Corpus:
    """The descriptors that vary, without those that are absurd or often missing."""
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    check_number(len(rows))
    values = values[rows].astype(np.float64)
    present = np.flatnonzero(np.isnan(values).mean(axis=0) <= MOST_MISSING)
    lowest, highest = np.nanmin(values[:, present], axis=0), np.nanmax(values[:, present], axis=0)
    columns = present[(highest > lowest) & (np.maximum(-lowest, highest) <= ABSURD)]
    names = [NAMES[column] for column in columns]
    return standardized_corpus([smiles[row] for row in rows], names, values[:, columns], "descriptors")


def environments(smiles: str) -> Counts:
    """The non-zero ``morgan_counts`` by position, in the place of GROVER's motifs (Rong et al., NeurIPS 2020)."""
    counts = morgan_counts(read_smiles(smiles))
    return {f"Morgan {place}": int(counts[place]) for place in np.flatnonzero(counts)}


def atom_types(smiles: str) -> Counts:
    """The number of atoms with each row of features [F], which the CLS predicts, as in Hu et al., ICLR 2020."""
    rows = FEATURIZERS[FOR_TABLES].graph(smiles).x.tolist()
    return Counter(f"atom {' '.join(map(str, row))}" for row in rows)


def readable_counts(count: Callable[[str], Counts], smiles: list[str]) -> Corpus:
    """``corpus_of_counts`` of the SMILES that ``count`` does not refuse with an InputError, by several processes."""
    parts = map_chunks(partial(counts_of_chunk, count), in_chunks(smiles), list)
    readable = [pair for _, of_chunk in parts for pair in of_chunk]
    return corpus_of_counts([text for text, _ in readable], [counts for _, counts in readable])


def counts_of_chunk(count: Callable[[str], Counts], smiles: Smiles) -> list[tuple[str, Counts]]:
    counted = []
    for text in smiles:
        with contextlib.suppress(InputError):
            counted.append((text, count(text)))
    return counted


def corpus_of_counts(smiles: list[str], counts: Sequence[Counts]) -> Corpus:
    """log(1 + count) of the keys that are frequent and vary."""
    from sklearn.feature_extraction import DictVectorizer  # its import takes seconds

    check_number(len(smiles))
    vectorizer = DictVectorizer()
    found = vectorizer.fit_transform(counts)
    frequent = np.flatnonzero(found.getnnz(axis=0) >= LEAST_SHARE * len(smiles))
    values = found[:, frequent].log1p().astype(np.float32).toarray()
    told = np.flatnonzero(values.max(axis=0) > values.min(axis=0))
    names = vectorizer.get_feature_names_out()[frequent[told]].tolist()
    return standardized_corpus(smiles, names, values[:, told], "counts")


def teacher(path: Path) -> Pretraining:
    """Embeddings of another model in an .npz from the command ``embed``: distillation (Romero et al., ICLR 2015)."""
    try:
        with np.load(path) as arrays:
            embeddings, known_smiles = arrays["embeddings"], arrays["smiles"].tolist()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        raise InputError(f"{path} holds no embeddings: name an .npz that the command embed wrote") from None
    if embeddings.ndim != 2 or len(embeddings) != len(known_smiles):
        raise InputError(f"{path} holds no embedding for each of its molecules: write it with the command embed")
    finite = np.isfinite(embeddings).all(axis=1)
    row = {text: place for place, text in enumerate(known_smiles) if finite[place]}

    def corpus(smiles: list[str]) -> Corpus:
        """The molecules whose SMILES, exactly as in the tables, have an embedding; labels are its columns that vary."""
        embedded = [text for text in smiles if text in row]
        if len(embedded) < FEWEST:
            count = f"embeddings of {len(embedded)} of the {len(smiles)} molecules"
            raise InputError(f"{path} has {count}: write it with the command embed from the same tables")
        values = embeddings[[row[text] for text in embedded]].astype(np.float32)
        mean, std = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        told = np.flatnonzero(std > 1e-6 * (1 + np.abs(mean)))
        names = [f"{TEACHER}{place}" for place in told]
        return standardized_corpus(embedded, names, values[:, told], "embedding")

    return Pretraining(f"the embeddings in {path.name}", corpus)


OBJECTIVES = {
    "descriptors": Pretraining("RDKit's descriptors", descriptors_of),
    "fingerprints": Pretraining("counts of Morgan fingerprints", partial(readable_counts, environments)),
    "masked-atoms": Pretraining(
        "atom types of molecules with masked atoms", partial(readable_counts, atom_types), MaskedLabels
    ),
}


def find_objective(name: str) -> Pretraining:
    return OBJECTIVES[one_of("objective", name, OBJECTIVES)]
