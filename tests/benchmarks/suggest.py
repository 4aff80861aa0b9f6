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
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem

from graphormer_sepnorm.chem.fingerprints import pick_diverse
from graphormer_sepnorm.chem.properties import molecule_key
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.table_model.features import MoleculeFeatures, descriptor_values
from graphormer_sepnorm.table_model.reference import BODY, Counts, Encoder
from tests.benchmarks.tables import fit_kernel

FIRST, BEST, POOL = 100, 0.1, 400
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
            asked = (options.rounds, options.per_round)
            found = np.array([table.found(*WAYS[name], seed, *asked) for seed in range(options.seeds)])
            shown = {"table": path.stem, "rows": len(table.y), "by": name}
            shown |= {"found": round(found[:, -1].mean(), 3), "deviation": round(found[:, -1].std(), 3)}
            print(json.dumps({**shown, "rounds": found.mean(axis=0).round(3).tolist()}), flush=True)


def rows_of(path: Path, target: str) -> pd.DataFrame:
    table = pd.read_csv(path).dropna(subset=[target])
    return table[table.split == "train"] if "split" in table else table


class Simulated:
    """A table whose labels are revealed as they are asked for."""

    def __init__(self, table: pd.DataFrame, target: str, minimize: bool):
        smiles = table.smiles.tolist()
        self.y, self.minimize = table[target].to_numpy(np.float64), minimize
        self.molecules = MoleculeFeatures(smiles)
        for view in (Counts(), descriptor_values, Encoder.named(BODY)):
            self.molecules.of(view)
        self.mols = [Chem.MolFromSmiles(text) for text in smiles]
        self.keys = np.array([molecule_key(mol) for mol in self.mols])
        order = np.argsort(self.y if minimize else -self.y, kind="stable")
        self.best = set(order[: round(BEST * len(order))].tolist())

    def found(self, by: str, distance: float, seed: int, rounds: int, per_round: int) -> list[float]:
        """The share of the best rows that is known at first and after each round."""
        random = np.random.default_rng(seed)
        known = random.permutation(len(self.y))[:FIRST].tolist()
        shares = [self.share(known)]
        for _ in range(rounds):
            rest = np.setdiff1d(np.arange(len(self.y)), known)
            if by == "random":
                known += random.permutation(rest)[:per_round].tolist()
            else:
                known += self.choose(np.array(known), rest, by, distance, per_round).tolist()
            shares.append(self.share(known))
        return shares

    def share(self, known: list[int]) -> float:
        return len(self.best & set(known)) / len(self.best)

    def choose(self, known: np.ndarray, rest: np.ndarray, by: str, distance: float, count: int) -> np.ndarray:
        """The rows that ``suggest`` would choose among the rest."""
        model = fit_kernel(self.molecules.take(known), self.keys[known].tolist(), self.y[known, None], ("y",))
        found = model.stacked(self.molecules.take(rest))
        best = float(self.y[known].min() if self.minimize else self.y[known].max())
        acquisition = Acquisition(by, "y", self.minimize, best)
        promise = acquisition(found.values[:, 0], found.spread[:, 0])
        order = np.argsort(promise if acquisition.lowest_first else -promise, kind="stable")[:POOL]
        return rest[order[pick_diverse([self.mols[row] for row in rest[order]], count, distance)]]


if __name__ == "__main__":
    main()
