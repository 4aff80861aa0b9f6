"""Pre-training without labels: a body that learns to predict RDKit's descriptors of molecules.

Source: Burns et al., "Deep Learning Foundation Models from Classical Molecular Descriptors", 2025 (CheMeleon), with
Mordred's descriptors there.

Axis letters: M molecules, D descriptors.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors
from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES, MoleculeGraph
from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig
from graphormer_sepnorm.dataset import cache_root
from graphormer_sepnorm.datasets.store import MoleculeDataset, locked, open_or_write
from graphormer_sepnorm.encodings import PRECOMPUTE_VERSION
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.recipes import Recipe, foundation_base, foundation_mini, foundation_small, task_config
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.run_writer import Recorder, training_alone
from graphormer_sepnorm.training.trainer import Trainer

VALIDATION = 0.02
CLIP = 6.0  # standard deviations
ABSURD = 1e6
MOST_MISSING = 0.05
TRAIN = TrainConfig(epochs=6, batch_size=64, lr=2e-3, clip_norm=1.0, optimizer="muon", weight_decay=0.15)
SIZES = {
    "mini": Recipe(foundation_mini, TRAIN),
    "small": Recipe(foundation_small, TRAIN),
    "base": Recipe(foundation_base, TRAIN),
}


@dataclass(frozen=True)
class Corpus:
    """Molecules to pre-train on.

    Attributes:
        smiles: [M].
        targets: names of the descriptors that are used.
        y: float32 [M, D], their values in standard deviations from the mean, at most ``CLIP``; NaN where missing.
    """

    smiles: list[str]
    targets: tuple[str, ...]
    y: np.ndarray

    def split(self, seed: int) -> tuple["Corpus", "Corpus"]:
        """Training and validation molecules, at random."""
        order = np.random.default_rng(seed).permutation(len(self.smiles))
        num_val = max(round(VALIDATION * len(order)), 1)
        return self.take(np.sort(order[num_val:])), self.take(np.sort(order[:num_val]))

    def take(self, rows: np.ndarray) -> "Corpus":
        return Corpus([self.smiles[row] for row in rows], self.targets, self.y[rows])

    def dataset(self, config: Config, name: str) -> MoleculeDataset:
        """The molecules prepared for the model of ``config``, from the cache where they are there."""
        encodings = config.model.encodings
        key = f"{config.featurizer}/{encodings!r}/{PRECOMPUTE_VERSION}/{self.targets}/{digest(self.smiles, self.y)}"
        folder = cache_root() / f"pretrain-{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        return open_or_write(folder, self.labelled, encodings, key, f"preparing {name}")

    def labelled(self) -> Graphs:
        """The molecules as graphs, read in several processes."""
        graphs = [graph for _, found in map_chunks(read_graphs, in_chunks(self.smiles), list) for graph in found]
        return FEATURIZERS[FOR_TABLES].pack(graphs).with_targets(self.y)


def read_graphs(smiles: Smiles) -> list[MoleculeGraph]:
    return [FEATURIZERS[FOR_TABLES].graph(text or "") for text in smiles]


def digest(smiles: list[str], y: np.ndarray) -> str:
    return hashlib.sha256("\n".join(smiles).encode(errors="surrogateescape") + y.tobytes()).hexdigest()


def read_sources(sources: Sequence[str], smiles_column: str | None = None) -> list[str]:
    """The SMILES of all rows of tables, one table after another; raises InputError as ``open_table``."""
    smiles = []
    for source in sources:
        with open_table(source, smiles_column) as table:
            smiles += [row.smiles for row in table.rows]
    return smiles


def make_corpus(smiles: list[str], values: np.ndarray) -> Corpus:
    """The molecules that have descriptors, with those descriptors that tell them apart, scaled and clipped.

    A descriptor is left out if it is the same for all, if it is beyond ``ABSURD`` for any, or if more than
    ``MOST_MISSING`` of the molecules do not have it.

    Args:
        smiles: [M].
        values: [M, len(NAMES)], NaN where missing.

    Raises:
        InputError: too few molecules to tell them apart.
    """
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    if len(rows) < 3:
        raise InputError(f"{len(rows)} molecules can be read; pre-training needs many thousands")
    values = values[rows].astype(np.float64)
    columns = telling_columns(values)
    if not len(columns):
        raise InputError("all molecules have the same descriptors: there is nothing to learn")
    values = values[:, columns]
    scaled = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    names = tuple(NAMES[column] for column in columns)
    return Corpus([smiles[row] for row in rows], names, scaled.clip(-CLIP, CLIP).astype(np.float32))


def telling_columns(values: np.ndarray) -> np.ndarray:
    """The columns of values [M, D] that ``make_corpus`` keeps."""
    present = np.flatnonzero(np.isnan(values).mean(axis=0) <= MOST_MISSING)
    lowest, highest = np.nanmin(values[:, present], axis=0), np.nanmax(values[:, present], axis=0)
    return present[(highest > lowest) & (np.maximum(-lowest, highest) <= ABSURD)]


def pretrain(
    sources: Sequence[str],
    recipe: Recipe,
    out: Path,
    smiles_column: str | None = None,
    resume: bool = False,
) -> dict:
    """Trains a body on the descriptors of all molecules of some tables.

    Args:
        sources, smiles_column: tables as ``open_table`` reads them.
        recipe: one of ``SIZES``, perhaps with another optimisation.
        out: run folder; must be new unless ``resume``.
        resume: go on from the last saved epoch of ``out``.

    Returns:
        ``molecules, validation, skipped, targets, epoch, metric, value``; the value is the mean absolute error on
        validation molecules in standard deviations, over all descriptors.

    Raises:
        InputError: bad input of any kind.
    """
    run = RunFolder(out)
    run.check_free(resume)
    find_optimizer(recipe.train.optimizer)
    with advising("what is computed is kept: go on with the same command and --resume"):
        smiles = read_sources(sources, smiles_column)
        folder = cache_root() / "descriptors"
        with locked(folder):
            corpus = make_corpus(smiles, all_descriptors([*smiles], folder))
        task = TaskConfig("regression", "mae", corpus.targets, loss="mse")
        name = f"RDKit's descriptors of {', '.join(Path(source).name for source in sources)}"
        config = task_config(name, FOR_TABLES, task, recipe.train, None, recipe.architecture)
        train, val = (
            part.dataset(config, name)
            for part, name in zip(corpus.split(recipe.train.seed), ("train", "val"), strict=True)
        )
        recorder = Recorder(Trainer(config, train, val, verbose=True), run)
        with training_alone(run, resume):
            if resume:
                recorder.resume()
            facts = recorder.train()
    return {
        "molecules": len(train),
        "validation": len(val),
        "skipped": len(smiles) - len(train) - len(val),
        "targets": len(corpus.targets),
        "epoch": facts["epoch"],
        "metric": task.metric,
        "value": facts["val_metric"],
    }
