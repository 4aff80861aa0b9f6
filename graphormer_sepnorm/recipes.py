"""Recipes: an architecture and its optimization, by name, from an earlier run or from shipped weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import Config, ModelConfig, TaskConfig, TrainConfig, read_config
from graphormer_sepnorm.datasets.benchmarks import find_dataset
from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.encodings.shipped import Centrality, Cycles, EdgePath, RandomWalk, Rings, Spatial
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.runs.checkpoint import load_tensors
from graphormer_sepnorm.runs.zoo import PRETRAINED, shipped_models

Architecture = Callable[[tuple[int, ...], tuple[int, ...], int], ModelConfig]


@dataclass(frozen=True)
class Recipe:
    """How to build and train a model for any vocabulary and number of tasks."""

    architecture: Architecture  # from ``atom_sizes``, ``bond_sizes`` and the number of tasks
    train: TrainConfig


def paper_encodings(*, max_hops: int = 5) -> tuple[Encoding, ...]:
    """The three encodings of Graphormer, with paths of up to ``max_hops`` bonds."""
    return Centrality(), Spatial(), EdgePath(max_hops=max_hops)


def slim(atom_sizes: tuple[int, ...], bond_sizes: tuple[int, ...], num_tasks: int = 1) -> ModelConfig:
    """Graphormer-slim: 12 layers, width 80, FFN 80, 8 heads; under 500,000 parameters on ZINC."""
    return ModelConfig(atom_sizes, bond_sizes, num_tasks, encodings=paper_encodings())


def variant(architecture: Architecture, **fields: Any) -> Architecture:
    """An architecture with some fields of ``ModelConfig`` replaced."""
    return lambda *sizes: replace(architecture(*sizes), **fields)


DROPS: dict[str, Any] = {"dropout": 0.1, "attention_dropout": 0.1}
WALKS_AND_RINGS = (*paper_encodings(), RandomWalk(), Rings())
# Graphormer-base: 12 layers, width 768, FFN 768, 32 heads.
base = variant(slim, width=768, ffn_width=768, heads=32, **DROPS)
# Graphormer-slim with 10 layers, messages along bonds, walk, ring and cycle encodings, and a bias network; LayerNorm on
# the CLS, BatchNorm on the atoms.
best = variant(
    slim,
    layers=10,
    encodings=(*WALKS_AND_RINGS, Cycles()),
    messages=True,
    bias_hidden=32,
    norm="sepnorm-layernorm-batchnorm",
    attention_dropout=0.4,
    embedding_std=0.2,
)
# With attention only in the last three of its ten layers, and atom values.
local = variant(best, attention_layers=3, atom_values=True)
# Graphormer-slim as trained on ZINC in its paper: pre-norm with a final norm, LayerNorm for all tokens, dropout, and
# bonds along up to 20 steps of a path. The paper makes 400,000 updates of 256 molecules, which are 10,000 epochs of the
# 10,000 molecules of the subset; the 400 epochs of this recipe are 16,000 updates. ``docs/for-researchers/fidelity.md``
# lists other differences. Source: Ying et al., NeurIPS 2021, hyperparameters of Graphormer-slim on ZINC.
paper = variant(slim, encodings=paper_encodings(max_hops=20), norm="sharenorm", norm_position="pre", **DROPS)
# For pretraining, without cycles; about three million, 0.7 million and 0.3 million parameters. In the small one, the
# CLS and the atoms each have a BatchNorm.
foundation_base = variant(best, encodings=WALKS_AND_RINGS, width=192, ffn_width=192, attention_dropout=0.1)
foundation_small = variant(
    foundation_base, layers=8, width=128, ffn_width=128, attention_layers=3, norm="sepnorm-batchnorm"
)
foundation_mini = variant(foundation_small, layers=6, width=80, ffn_width=80)
FINE_TUNING_DROPOUT = 0.1  # of the small one, for fine-tuning on small tables
FINE_TUNING = TrainConfig(
    epochs=8,
    min_updates=400,
    batch_size=32,
    lr=3e-4,
    weight_decay=0.05,
    clip_norm=1.0,
    averaging=0.98,
    start_from="foundation",
    frozen_layers=5,  # the local blocks, so that the networks of a table share them
    frozen_statistics=True,
)
BEST_TRAINING = TrainConfig(epochs=50, clip_norm=1.0, optimizer="muon", weight_decay=0.15)
LOCAL_TRAINING = replace(BEST_TRAINING, epochs=40, averaging=0.998, dropout_until=0.85)
RECIPES = {
    "slim": Recipe(slim, TrainConfig()),
    "base": Recipe(base, TrainConfig(lr=2e-4)),
    "paper": Recipe(paper, TrainConfig(epochs=400, batch_size=256, lr=2e-4, schedule="linear")),
    "best": Recipe(best, BEST_TRAINING),
    "local": Recipe(local, LOCAL_TRAINING),
    "foundation": Recipe(variant(foundation_small, dropout=FINE_TUNING_DROPOUT), FINE_TUNING),
}
FROM_RANDOM_WEIGHTS = [name for name, recipe in RECIPES.items() if recipe.train.start_from is None]


def find_recipe(name: str) -> Recipe:
    """The recipe for a name, shipped weights (those that predict nothing: their fine-tuning) or a ``config.json``."""
    if name in RECIPES:
        return RECIPES[name]
    shipped = shipped_models()
    if name in shipped:
        _, config, _ = load_tensors(shipped[name])
        if name in PRETRAINED:  # the optimization and the dropout of the recipe "foundation"
            frozen = min(FINE_TUNING.frozen_layers, config.model.local_layers)
            train = replace(FINE_TUNING, start_from=name, frozen_layers=frozen)
            config = replace(config, model=replace(config.model, dropout=FINE_TUNING_DROPOUT), train=train)
    elif Path(name).is_file():
        config = read_config(Path(name))
    else:
        names = list(dict.fromkeys([*RECIPES, *shipped]))
        choices = f"{', '.join(names)} or the config.json of a run{did_you_mean(name, names)}"
        raise InputError(f"unknown recipe {name!r}, choose one of {choices}")

    def architecture(atom_sizes: tuple[int, ...], bond_sizes: tuple[int, ...], num_tasks: int = 1) -> ModelConfig:
        if (atom_sizes, bond_sizes) != (config.model.atom_sizes, config.model.bond_sizes):
            raise InputError(f"the model of {name} reads {config.featurizer!r} features, this dataset has other ones")
        return replace(config.model, num_tasks=num_tasks, conditions=0)

    return Recipe(architecture, config.train)


def dataset_config(
    dataset: str, train: TrainConfig, norm: str | None = None, architecture: Architecture = slim
) -> Config:
    """The config of an architecture for a named dataset; raises InputError for an unknown name."""
    source = find_dataset(dataset)
    return task_config(dataset, source.featurizer, source.task, Recipe(architecture, train), norm)


def task_config(dataset: str, featurizer: str, task: TaskConfig, recipe: Recipe, norm: str | None = None) -> Config:
    """The config of a recipe for a task on the features of ``featurizer``; ``norm`` replaces its norm."""
    features = FEATURIZERS[featurizer]
    model = recipe.architecture(features.atom_sizes, features.bond_sizes, len(task.targets))
    return Config(dataset, featurizer, task, model if norm is None else replace(model, norm=norm), recipe.train)
