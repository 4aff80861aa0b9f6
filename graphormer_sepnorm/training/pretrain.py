"""Pretraining without labels, on an objective computed from the molecules themselves."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS, FOR_TABLES, MoleculeGraph
from graphormer_sepnorm.config import Config, TrainConfig
from graphormer_sepnorm.datasets.store import MoleculeDataset, open_or_write
from graphormer_sepnorm.encodings import cache_key
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.recipes import Recipe, foundation_base, foundation_mini, foundation_small, task_config
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.tables.formats import named_column, rows_of
from graphormer_sepnorm.training.objectives import Corpus, Pretraining
from graphormer_sepnorm.training.optimizers import find_optimizer
from graphormer_sepnorm.training.run_writer import RunWriter, training_alone
from graphormer_sepnorm.training.trainer import Trainer

VALIDATION = 0.02
TRAIN = TrainConfig(epochs=6, batch_size=64, lr=2e-3, clip_norm=1.0, optimizer="muon", weight_decay=0.15)
SHAPES = {"mini": foundation_mini, "small": foundation_small, "base": foundation_base}
SIZES = {size: Recipe(shape, TRAIN) for size, shape in SHAPES.items()}


def split_corpus(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    order = np.random.default_rng(seed).permutation(len(corpus.smiles))
    num_val = max(round(VALIDATION * len(order)), 1)
    return corpus.take(np.sort(order[num_val:])), corpus.take(np.sort(order[:num_val]))


def prepared_corpus(corpus: Corpus, config: Config, name: str) -> MoleculeDataset:
    """The molecules prepared for the model of ``config``, from the cache if possible."""
    encodings = config.model.encodings
    digest = hashlib.sha256("\n".join(corpus.smiles).encode(errors="surrogateescape") + corpus.y.tobytes()).hexdigest()
    key = f"{config.featurizer}/{cache_key(encodings)}/{corpus.targets}/{digest}"
    folder = cache_root() / f"pretrain-{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"

    def read() -> Graphs:
        parts = map_chunks(graphs_of, in_chunks(corpus.smiles), list)
        graphs = [graph for _, of_chunk in parts for graph in of_chunk]
        return FEATURIZERS[FOR_TABLES].pack(graphs).with_targets(corpus.y)

    return open_or_write(folder, read, encodings, key, f"preparing {name}")


def graphs_of(smiles: Smiles) -> list[MoleculeGraph]:
    return list(map(FEATURIZERS[FOR_TABLES].graph, smiles))


def pretrain(
    sources: Sequence[str],
    objective: Pretraining,
    recipe: Recipe,
    out: Path,
    smiles_column: str | None = None,
    resume: bool = False,
) -> dict:
    """Pretrains a model on all molecules of some tables; ``value`` is the validation score of the best epoch."""
    run = RunFolder(out)
    run.check_free(resume)
    find_optimizer(recipe.train.optimizer)
    with advising("finished work is kept: continue with the same command and --resume"):
        smiles = []
        for source in sources:
            column = named_column(source, smiles_column) if len(sources) > 1 else smiles_column
            smiles += [row.smiles for row in rows_of(source, column)]
        corpus = objective.corpus(smiles)
        task = objective.task(corpus.targets)
        name = f"{objective.title} of {', '.join(Path(source).name for source in sources)}"
        config = task_config(name, FOR_TABLES, task, recipe)
        train, val = map(prepared_corpus, split_corpus(corpus, recipe.train.seed), (config, config), ("train", "val"))
        trainer = Trainer(config, train, val, verbose=True, make_objective=objective.objective)
        with training_alone(run, resume):
            facts = RunWriter(trainer, run).train(resume)
    return {
        "molecules": len(train),
        "validation": len(val),
        "skipped": len(smiles) - len(train) - len(val),
        "targets": len(corpus.targets),
        "epoch": facts["epoch"],
        "metric": task.metric,
        "value": facts["val_metric"],
    }
