"""The table model on activity tables whose most potent training labels are bounds: one JSON line per table and seed.

    python tests/benchmarks/bounds.py FOLDER [--tables CHEMBL2034_Ki ...] [--members kernel forest] [--seeds 3] [--test]

FOLDER, or the environment variable GRAPHORMER_SEPNORM_TABLES, holds the tables in ``activity``, with the columns
"smiles", "pActivity" and "split". Each training row was measured in one of five assays, which report no label above a
limit of theirs: a percentile of the training labels, drawn from 60 to 70. Labels above the limit of their assay are
bounds, so that all beyond the 70th percentile are. The labels of the test rows are exact.

Of the model of ``train --quick`` (the kernel), of the model of all ``--members``, and of the latter fitted to exact
labels: RMSE, coverage of 90 % intervals over all and over the molecules beyond the 70th percentile, and the share of
the 10 % most potent molecules that are among the 10 % predicted to be most potent. Choices are made by scores out of
fold, on the true labels of the training rows. Test rows are scored with --test, once, at the end.
"""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import fit_members, foundation_config, put_together
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members.base import ToFit
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from tests.benchmarks.tables import RMSE, folds_of, parser_of

TARGET = "pActivity"
ASSAYS = 5
PERCENTILES = 60, 70  # of the limits of the assays
CONFIDENCE = 0.9
BEST = 0.1


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for path in sorted((options.folder / "activity").glob("*.csv")):
        if options.tables and path.stem not in options.tables:
            continue
        table = Table(path, options.members, options.test)
        exact = table.measured(Labels(table.task, table.y))
        for seed in range(options.seeds):
            started = time.perf_counter()
            labels = bounded(table.task, table.y, seed)
            row = {"table": path.stem, "seed": seed, "bounds": round(float(np.isnan(labels.y).mean()), 3)}
            row |= table.measured(labels) | {"exact": exact["whole"]}
            print(json.dumps({**row, "seconds": round(time.perf_counter() - started, 1)}), flush=True)


def bounded(task: TaskConfig, y: np.ndarray, seed: int) -> Labels:
    """Labels [M, 1] that are bounds above the limit of the assay that a molecule was measured in."""
    random = np.random.default_rng(seed)
    limits = np.percentile(y, random.uniform(*PERCENTILES, ASSAYS))
    limit = limits[random.integers(ASSAYS, size=len(y))][:, None]
    bounds = np.stack([np.where(y > limit, limit, -np.inf), np.full_like(y, np.inf)], axis=2)
    return Labels(task, np.where(y > limit, np.nan, y), bounds)


class Table:
    """A table, with the members to fit to its training rows."""

    def __init__(self, path: Path, members: list[str], test: bool):
        self.members, self.test = members, test
        table = pd.read_csv(path).dropna(subset=[TARGET])
        learnt, held_back = table[table.split == "train"], table[table.split == "test"]
        smiles = learnt.smiles.tolist()
        self.task = TaskConfig("regression", "rmse", (TARGET,))
        self.y, self.asked = learnt[[TARGET]].to_numpy(np.float64), held_back[[TARGET]].to_numpy(np.float64)
        self.molecules = MoleculeFeatures(smiles)
        self.held_back = MoleculeFeatures(held_back.smiles.tolist())
        self.folds = folds_of(smiles, Labels(self.task, self.y), "column")

    def measured(self, labels: Labels) -> dict[str, dict[str, float]]:
        """The scores of the kernel, of all members and of each member, after fitting to labels."""
        table = ToFit(self.molecules, labels, self.folds, foundation_config(labels.task))
        fitted, _ = fit_members(table, self.members)
        found = {}
        for name, members in {"quick": ["kernel"], "whole": self.members}.items():
            kept = {member: fitted[member] for member in members}
            model, out_of_fold = put_together(kept, table)
            predicted = model.stacked(self.held_back) if self.test else out_of_fold
            found[name] = self.scores(model, predicted)
        y = self.asked if self.test else self.y
        rmse = {name: round(RMSE(y, each), 4) for name, each in zip(model.members, predicted.by_member, strict=True)}
        weights = dict(zip(model.members, model.weights[:, 0].round(3).tolist(), strict=True))
        return found | {"members": rmse, "weights": weights}

    def scores(self, model: TableModel, predicted: Stacked) -> dict[str, float]:
        assert model.trust is not None and model.trust.intervals is not None
        y, values = self.asked if self.test else self.y, predicted.values
        low, high = model.trust.intervals.ends(CONFIDENCE, values, predicted.spread, ())
        inside, potent = (low <= y) & (y <= high), y > np.percentile(self.y, PERCENTILES[1])
        best = max(1, round(BEST * len(y)))
        top = [set(np.argsort(-column[:, 0], kind="stable")[:best].tolist()) for column in (y, values)]
        found = {
            "rmse": RMSE(y, values),
            "coverage": inside.mean(),
            "coverage_potent": inside[potent].mean(),
            "width": (high - low).mean(),
            "bias_potent": (values - y)[potent].mean(),
            "found": len(top[0] & top[1]) / best,
        }
        return {name: round(float(value), 4) for name, value in found.items()}


if __name__ == "__main__":
    main()
