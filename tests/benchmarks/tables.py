"""The table model on published tables, next to published numbers: one JSON line per table.

    python tests/benchmarks/tables.py FOLDER [--tables activity/CHEMBL2034_Ki ...] [--members kernel forest] [--test]

FOLDER, or the environment variable GRAPHORMER_SEPNORM_TABLES, holds tables with a column "split" and ``reference.csv``.
Choices are made by the scores out of fold, on the training rows. Test rows are scored with --test, once, at the end.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.chem.fingerprints import pick_diverse
from graphormer_sepnorm.chem.properties import molecule_key, murcko_scaffold
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.table_model.features import MoleculeFeatures, descriptor_values
from graphormer_sepnorm.table_model.fit import FittedTable, fit_table, foundation_config, gains_of_network
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.table_model.reference import BODY, Counts, Encoder
from graphormer_sepnorm.table_model.stacking import make_folds
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from graphormer_sepnorm.tasks import METRICS

FOLDER_VARIABLE = "GRAPHORMER_SEPNORM_TABLES"
FIRST = 100  # molecules whose labels a campaign knows at first
RMSE = METRICS["rmse"]


def parser_of(description: str) -> argparse.ArgumentParser:
    """A parser of what the benchmarks on these tables are asked."""
    parser, known = argparse.ArgumentParser(description=description.splitlines()[0]), os.environ.get(FOLDER_VARIABLE)
    parser.add_argument("folder", nargs="?" if known else None, type=Path, default=known)
    parser.add_argument("--tables", nargs="+", help="names of tables; by default all")
    parser.add_argument("--members", nargs="+", default=list(MEMBERS), choices=list(MEMBERS))
    parser.add_argument("--test", action="store_true", help="score the test rows")
    return parser


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--look", action="store_true", help="train the first network only, and show what it gains")
    options = parser.parse_args()
    reference = pd.read_csv(options.folder / "reference.csv").set_index("table")
    for name in options.tables or reference.index:
        published = reference.loc[name].dropna().to_dict()
        path, gains = options.folder / f"{name}.csv", []

        def looked(*known, gains=gains) -> str:
            gains.extend(each[0].round(4) for each in gains_of_network(*known))
            return "only looked at"

        look = looked if options.look else None
        row = measure(path, published.pop("target"), options.members, options.test, look)
        row |= {"gain": gains[0], "standard error": gains[1]} if gains else {}
        print(json.dumps({"table": name, **row, "published on test": published}), flush=True)


def measure(path: Path, target: str, members: list[str], test: bool, look: Callable[..., str] | None) -> dict:
    """Scores of the table model and of each member, out of fold or on the test rows."""
    table = pd.read_csv(path).dropna(subset=[target])
    learnt, held_back = table[table.split == "train"], table[table.split == "test"]
    started = time.perf_counter()
    labels = Labels(TaskConfig("regression", "rmse", (target,)), np.array(learnt[[target]], np.float64))
    fitted = fit(learnt.smiles.tolist(), labels, foundation_config(labels.task), members, "column", look=look)
    seconds = round(time.perf_counter() - started, 1)
    molecules, y = (held_back, held_back[[target]]) if test else (learnt, learnt[[target]])
    found = fitted.model.stacked(MoleculeFeatures(molecules.smiles.tolist())) if test else fitted.out_of_fold
    scores = dict(zip(fitted.model.members, (RMSE(y.to_numpy(), each) for each in found.by_member), strict=True))
    weights = dict(zip(fitted.model.members, fitted.model.weights[:, 0].round(3).tolist(), strict=True))
    return {
        "rows": len(y),
        "scored": "test" if test else "out of fold",
        "rmse": RMSE(y.to_numpy(), found.values),
        **scores,
        "weights": weights,
        "seconds": seconds,
    }


def fit(
    smiles: list[str], labels: Labels, config: Config, members: Sequence[str], split: SplitName, seed=0, look=None
) -> FittedTable:
    """A table model of molecules that are stratified into folds as by a split."""
    folds = folds_of(smiles, labels, split, seed)
    return fit_table(ToFit(MoleculeFeatures(smiles), labels, folds, config, look=look), members)


def folds_of(smiles: list[str], labels: Labels, split: SplitName, seed: int = 0) -> Folds:
    scaffolds, keys = [murcko_scaffold(text) for text in smiles], [molecule_key(text) for text in smiles]
    return make_folds(Structures(map(MoleculeStructure, smiles, scaffolds, keys)), labels, split, seed)


def fit_kernel(molecules: MoleculeFeatures, keys: list[str], y: np.ndarray, targets: tuple[str, ...]) -> TableModel:
    """The model of ``train --quick`` of labels [M, tasks], with random folds of molecules by their keys."""
    labels = Labels(TaskConfig("regression", "rmse", targets), y)
    folds = make_folds(Structures(map(MoleculeStructure, keys, keys, keys)), labels, "random", 0)
    return fit_table(ToFit(molecules, labels, folds, foundation_config(labels.task)), ["kernel"]).model


class Campaign:
    """Molecules with labels [M, tasks]; those of 100 random ones are known at first, others are measured in rounds."""

    def __init__(self, smiles: list[str], y: np.ndarray, targets: tuple[str, ...]):
        self.y, self.targets, self.molecules = y, targets, MoleculeFeatures(smiles)
        self.mols = [read_smiles(text) for text in smiles]
        self.keys = np.array([molecule_key(mol) for mol in self.mols])
        for view in (Counts(), descriptor_values, Encoder.named(BODY)):
            self.molecules.of(view)

    def shares(self, good: np.ndarray, choose: Callable | None, seed: int, rounds: int, per_round: int) -> list[float]:
        """The share of the good rows that is known at first and after each round; None chooses at random.

        ``choose`` gives rows from those that are known, the others, and the number of the round.
        """
        random = np.random.default_rng(seed)
        known = random.permutation(len(self.y))[:FIRST]
        shares = [good[known].sum() / good.sum()]
        for number in range(rounds):
            rest = np.setdiff1d(np.arange(len(self.y)), known)
            chosen = choose(known, rest, number) if choose else random.permutation(rest)[:per_round]
            known = np.concatenate([known, chosen])
            shares.append(good[known].sum() / good.sum())
        return shares

    def diverse(self, order: np.ndarray, count: int, distance: float) -> np.ndarray:
        """The rows to measure of those in order of preference."""
        return order[pick_diverse([self.mols[row] for row in order], count, distance)]

    def predicted(self, known: np.ndarray, rest: np.ndarray) -> tuple[TableModel, Stacked]:
        """The model of ``train --quick`` of the known molecules, and its predictions of others."""
        model = fit_kernel(self.molecules.take(known), self.keys[known].tolist(), self.y[known], self.targets)
        return model, model.stacked(self.molecules.take(rest))


def shown(shares: list[list[float]], ddof: int) -> dict:
    """The share that is known at the end, as mean and deviation over the seeds, and the mean after each round."""
    found = np.array(shares)
    ends = {"found": round(found[:, -1].mean(), 3), "deviation": round(found[:, -1].std(ddof=ddof), 3)}
    return {**ends, "rounds": found.mean(axis=0).round(3).tolist()}


if __name__ == "__main__":
    main()
