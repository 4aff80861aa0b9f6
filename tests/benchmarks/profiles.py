"""How soon molecules that meet four criteria are found if each round of measurements is chosen by a profile.

    python tests/benchmarks/profiles.py FOLDER [--seeds 3] [--rounds 5] [--per-round 20] [--calibration]

FOLDER has the tables of Fang et al. (2023): ``adme/HLM.csv`` and so on, with the columns ``smiles`` and ``value``, a
logarithm. ``MOLECULES`` random ones of the molecules for which all four endpoints of the criteria were measured take
part. Of these, 100 random ones are known at first. In each round a model of all six endpoints is fitted to what is
known, as ``train --quick`` does, and 20 of the other molecules are measured, chosen as ``suggest`` does:

- "profile": by the probability that all criteria hold;
- "desirability": by the desirability;
- "single target": by the confidence bound of the endpoint whose criterion the fewest molecules meet;
- "random".

A JSON line for each has the share of the molecules that meet all criteria that is known at the end, as mean and
deviation over the seeds, and the mean after each round.

With ``--calibration``, a model of 100 and one of 400 random molecules predict all others. A line for each kind of
probability has its Brier score and calibration error, as means over the seeds: of the single criteria, from a normal
distribution and from the conformal one of the intervals; of all four together, from correlated and independent errors.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from graphormer_sepnorm.chem.fingerprints import pick_diverse
from graphormer_sepnorm.chem.properties import molecule_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.classes import brier_score, calibration_error
from graphormer_sepnorm.predict.predictors import Predictions
from graphormer_sepnorm.project.judge import Goal
from graphormer_sepnorm.project.profile import Profile
from graphormer_sepnorm.table_model.features import MoleculeFeatures, descriptor_values
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reference import BODY, Encoder
from tests.benchmarks.tables import fit_kernel

ENDPOINTS = ("HLM", "RLM", "MDR1_ER", "Sol", "hPPB", "rPPB")
MOLECULES, FIRST, DISTANCE = 700, 100, 0.3
WAYS = ("profile", "desirability", "single target", "random")
# Human clearance of 10 and rat clearance of 100 mL/min/kg, an efflux ratio of 2 and a solubility of 30 ug/mL.
PROFILE = Profile.of(
    {"HLM": {"at_most": 1.0}, "RLM": {"at_most": 2.0}, "MDR1_ER": {"at_most": 0.3}, "Sol": {"at_least": 1.5}}
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--per-round", type=int, default=20)
    parser.add_argument("--calibration", action="store_true", help="score the probabilities instead")
    options = parser.parse_args()
    started = time.process_time()
    simulated = Simulated(read_tables(options.folder / "adme"))
    if options.calibration:
        for size in (FIRST, 4 * FIRST):
            scores = [simulated.calibration(seed, size) for seed in range(options.seeds)]
            for name in scores[0]:
                brier, error = np.mean([each[name] for each in scores], axis=0).round(4).tolist()
                print(json.dumps({"learnt": size, "of": name, "brier": brier, "error": error}), flush=True)
        return
    for way in WAYS:
        found = np.array([simulated.found(way, s, options.rounds, options.per_round) for s in range(options.seeds)])
        shown = {"by": way, "molecules": len(simulated.y), "good": int(simulated.good.sum())}
        shown |= {"found": round(found[:, -1].mean(), 3), "deviation": round(found[:, -1].std(ddof=1), 3)}
        shown |= {"rounds": found.mean(axis=0).round(3).tolist(), "seconds": round(time.process_time() - started)}
        print(json.dumps(shown), flush=True)


def read_tables(folder: Path) -> pd.DataFrame:
    """The values by SMILES of the molecules that take part."""
    values = [pd.read_csv(folder / f"{name}.csv").groupby("smiles").value.mean().rename(name) for name in ENDPOINTS]
    whole = pd.concat(values, axis=1)
    return whole.dropna(subset=list(PROFILE.criteria)).sample(MOLECULES, random_state=0)


class Simulated:
    """A table whose labels are revealed as they are asked for."""

    def __init__(self, table: pd.DataFrame):
        self.smiles, self.y = table.index.tolist(), table.to_numpy(np.float64)
        self.molecules = MoleculeFeatures(self.smiles)
        self.molecules.read("mol")
        for view in (descriptor_values, Encoder.named(BODY)):
            self.molecules.of(view)
        self.mols = [read_smiles(text) for text in self.smiles]
        self.keys = np.array([molecule_key(mol) for mol in self.mols])
        limits = {name: (line.at_least, line.at_most) for name, line in PROFILE.criteria.items()}
        within = table[list(limits)]
        meets = np.stack(
            [
                within[name].between(-np.inf if low is None else low, np.inf if high is None else high)
                for name, (low, high) in limits.items()
            ]
        )
        self.meets, self.good, self.single = meets.T, meets.all(axis=0), list(limits)[meets.sum(axis=1).argmin()]
        self.first: dict[int, tuple[TableModel, Predictions]] = {}

    def found(self, way: str, seed: int, rounds: int, per_round: int) -> list[float]:
        """The share of the good molecules that is known at first and after each round."""
        random = np.random.default_rng(seed)
        known = random.permutation(len(self.y))[:FIRST]
        shares = [self.good[known].sum() / self.good.sum()]
        for number in range(rounds):
            rest = np.setdiff1d(np.arange(len(self.y)), known)
            if way == "random":
                chosen = random.permutation(rest)[:per_round]
            else:
                order = rest[np.argsort(-self.promise(way, known, rest, seed if number == 0 else None), kind="stable")]
                chosen = order[pick_diverse([self.mols[row] for row in order], per_round, DISTANCE)]
            known = np.concatenate([known, chosen])
            shares.append(self.good[known].sum() / self.good.sum())
        return shares

    def calibration(self, seed: int, size: int) -> dict[str, tuple[float, float]]:
        """Brier score and calibration error of each kind of probability."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        known, rest = order[:size], order[size:]
        model, found = self.predicted(known, rest)
        judge = PROFILE.judge(model)
        alike = replace(judge, correlation=np.eye(len(judge.goals)))
        each, all_of_them = self.meets[rest].astype(float), self.good[rest, None].astype(float)
        by_scores = np.stack([conformal(goal, model, found) for goal in judge.goals], axis=1)
        chances = {
            "single, normal": (each, np.stack([goal.probability(found) for goal in judge.goals], axis=1)),
            "single, conformal": (each, by_scores),
            "all, correlated": (all_of_them, judge.probability(found)[:, None]),
            "all, independent": (all_of_them, alike.probability(found)[:, None]),
        }
        return {name: (brier_score(*of).mean(), calibration_error(*of).mean()) for name, of in chances.items()}

    def promise(self, way: str, known: np.ndarray, rest: np.ndarray, seed: int | None) -> np.ndarray:
        """The promise of the other molecules, that they are ranked by; all ways have the same first model of a seed."""
        if seed is None or seed not in self.first:
            model, found = self.predicted(known, rest)
            if seed is not None:
                self.first[seed] = model, found
        else:
            model, found = self.first[seed]
        if way == "single target":
            number = ENDPOINTS.index(self.single)
            minimize = PROFILE.criteria[self.single].at_least is None
            bound = Acquisition("confidence-bound", self.single, minimize)(
                found.values[:, number], found.spread[:, number]
            )
            return -bound if minimize else bound
        judge = PROFILE.judge(model)
        return judge.probability(found) if way == "profile" else judge.desirability(found)

    def predicted(self, known: np.ndarray, rest: np.ndarray) -> tuple[TableModel, Predictions]:
        """A model of the known molecules, and its predictions of others."""
        model = fit_kernel(self.molecules.take(known), self.keys[known].tolist(), self.y[known], ENDPOINTS)
        found = model.stacked(self.molecules.take(rest))
        return model, Predictions(found.values, found.spread, [""] * len(rest), [""] * len(rest))


def conformal(goal: Goal, model: TableModel, found: Predictions) -> np.ndarray:
    """The probability that a criterion with one limit holds, from the absolute errors that intervals are made of."""
    scores, offset = model.trust.intervals.scores[:, goal.place], model.trust.intervals.offset[goal.place]
    known = scores[~np.isnan(scores)]
    values, sign = goal.values(found), 1 if np.isfinite(goal.low) else -1
    gain = sign * (values - (goal.low if sign > 0 else goal.high)) / (found.spread[:, goal.place] + offset)
    inside = np.interp(np.abs(gain), [0, *known], np.arange(len(known) + 1) / (len(known) + 1))
    return 0.5 + 0.5 * np.sign(gain) * inside


if __name__ == "__main__":
    main()
