"""How soon the best molecules of a table are found if each round of measurements is chosen by ``suggest``.

    python tests/benchmarks/suggest.py TABLE.csv ... [--target pActivity] [--minimize] [--seeds 3] [--rounds 10]
        [--per-round 20] [--by random greedy]

Of each table 100 random rows are known at first. In each of ten rounds a model of ``train --quick`` is fitted to what
is known, and 20 of the other rows are measured. Of a table with a column "split" only the training rows take part.

One JSON line per table and way to choose has the share of the best tenth of the rows that is known at the end, as mean
and deviation over the seeds, and the mean after each round. "random" chooses at random, "greedy" by the predictions;
"diverse" keeps a Tanimoto distance of 0.3 between the molecules of a round.
"""

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.predict.acquisition import Acquisition
from tests.benchmarks.tables import Campaign, shown

BEST, POOL = 0.1, 400
WAYS = {
    "random": ("random", 0.0),
    "greedy": ("prediction", 0.0),
    "expected-improvement": ("expected-improvement", 0.0),
    "expected-improvement, diverse": ("expected-improvement", 0.3),
    "confidence-bound": ("confidence-bound", 0.0),
    "confidence-bound, diverse": ("confidence-bound", 0.3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--target", default="pActivity")
    parser.add_argument("--minimize", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--per-round", type=int, default=20)
    parser.add_argument("--by", nargs="+", choices=list(WAYS), default=list(WAYS))
    options = parser.parse_args()
    for path in options.tables:
        table = Simulated(rows_of(path, options.target), options.target, options.minimize)
        for name in options.by:
            (by, distance), count = WAYS[name], options.per_round
            way = None if by == "random" else partial(table.choose, by=by, distance=distance, count=count)
            found = [table.shares(table.good, way, seed, options.rounds, count) for seed in range(options.seeds)]
            print(json.dumps({"table": path.stem, "rows": len(table.y), "by": name, **shown(found, 0)}), flush=True)


def rows_of(path: Path, target: str) -> pd.DataFrame:
    table = pd.read_csv(path).dropna(subset=[target])
    return table[table.split == "train"] if "split" in table else table


class Simulated(Campaign):
    """A table whose best tenth is looked for."""

    def __init__(self, table: pd.DataFrame, target: str, minimize: bool):
        super().__init__(table.smiles.tolist(), table[[target]].to_numpy(np.float64), ("y",))
        self.minimize, self.good = minimize, np.zeros(len(self.y), bool)
        order = np.argsort(self.y[:, 0] if minimize else -self.y[:, 0], kind="stable")
        self.good[order[: round(BEST * len(order))]] = True

    def choose(
        self, known: np.ndarray, rest: np.ndarray, number: int, by: str, distance: float, count: int
    ) -> np.ndarray:
        """The rows that ``suggest`` would choose among the rest."""
        _, found = self.predicted(known, rest)
        best = float(self.y[known].min() if self.minimize else self.y[known].max())
        acquisition = Acquisition(by, "y", self.minimize, best)
        promise = acquisition(found.values[:, 0], found.spread[:, 0])
        order = np.argsort(promise if acquisition.lowest_first else -promise, kind="stable")[:POOL]
        return self.diverse(rest[order], count, distance)


if __name__ == "__main__":
    main()
