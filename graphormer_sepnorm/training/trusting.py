"""How far the predictions of a run on a table can be trusted: learnt, and measured on test.

Intervals or calibration are learnt from the validation molecules, which no model was fitted to.  They chose the epoch
and the weight of the forest, though, so what intervals and probabilities promise is measured on the test molecules.

Axis letters: M molecules of the test split, T targets.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.datasets.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.forward import embed_dataset
from graphormer_sepnorm.inference.predict import Nearness
from graphormer_sepnorm.inference.trust import (
    Domain,
    Intervals,
    Trust,
    brier_score,
    calibration_error,
    coverage,
    evenly,
    fit_calibration,
    fit_domain,
    fit_intervals,
)
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import plot_coverage, plot_errors_by_distance, plot_reliability
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.tables.prepared_table import TABLE, read_rows
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.training.experiment import Scores

CONFIDENCES = (0.5, 0.8, 0.9, 0.95)
CURVE = tuple(step / 20 for step in range(1, 20))
SIMILARITIES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
MOST_COMPARED = 2_000  # of the test molecules with the training molecules


@dataclass(frozen=True)
class FirstModel:
    """The first model of a run folder, with the molecules that all of its models share.

    Attributes:
        run: the run folder of the model, which has the table.
    """

    network: Network
    config: Config
    run: RunFolder

    def smiles(self, split: str) -> list[str]:
        return read_rows(self.run.path / TABLE, self.config.task, split)[0]

    def embeddings(self, split: str) -> np.ndarray:
        """Of the CLS [M, D]."""
        return embed_dataset(
            self.network, load_split(self.run.dataset(self.config), split, self.config.model.encodings)
        )


def load_first(path: Path) -> FirstModel:
    """Loads the model of a run folder, onto the device of ``device.current``."""
    network, config, _ = checkpoint.load_model(path)
    return FirstModel(network.to(current().device), config, RunFolder.around(path))


def fit_trust(first: FirstModel, val: Scores) -> Trust:
    """What is learnt from the training molecules and from the predictions for the validation molecules."""
    domain = fit_domain(first.smiles("train"), first.embeddings("train"))
    learnt = TASKS[val.task.kind].calibrated_by
    if learnt == "probabilities":
        return Trust(domain, calibration=fit_calibration(val.y, val.prediction))
    if learnt == "intervals" and not np.isnan(val.y).all(axis=0).any():
        return Trust(domain, intervals=fit_intervals(val.y, val.prediction, val.spread))
    return Trust(domain)


def measure(run: RunFolder, trust: Trust, test: Scores, final: Scores) -> dict:
    """Draws and returns how far intervals or probabilities hold on test: numbers by target, None where undefined.

    Args:
        test, final: before and after calibration.
    """
    targets = test.task.targets
    if trust.intervals is not None:
        held = {confidence: measure_interval(trust.intervals, confidence, test) for confidence in CONFIDENCES}
        curve = np.stack([measure_interval(trust.intervals, confidence, test)[0] for confidence in CURVE])
        plot_coverage(targets, np.array(CURVE), curve, run.calibration_picture)
        return {
            "coverage": {str(confidence): by_target(targets, shares) for confidence, (shares, _) in held.items()},
            "mean_width": {str(confidence): by_target(targets, widths) for confidence, (_, widths) in held.items()},
        }
    if trust.calibration is not None:
        plot_reliability(targets, test.y, test.prediction, final.prediction, run.calibration_picture)
        stages = {"before": test, "after": final}
        return {
            name: {stage: by_target(targets, score(scores.y, scores.prediction)) for stage, scores in stages.items()}
            for name, score in (("calibration_error", calibration_error), ("brier", brier_score))
        }
    return {}


def measure_interval(intervals: Intervals, confidence: float, test: Scores) -> tuple[np.ndarray, np.ndarray]:
    """The share of the labels in their interval and the mean width [T] each; NaN where there are no such intervals."""
    try:
        half_widths = intervals.half_widths(confidence, test.spread)
    except InputError:  # too few molecules of calibration
        return np.full(len(test.task.targets), np.nan), np.full(len(test.task.targets), np.nan)
    return coverage(test.y, test.prediction, half_widths), 2 * half_widths.mean(axis=0)


def by_target(targets: tuple[str, ...], values: np.ndarray) -> dict[str, float | None]:
    """Numbers [T] by the names of their targets, as JSON has them."""
    return {name: float(value) if np.isfinite(value) else None for name, value in zip(targets, values, strict=True)}


@dataclass(frozen=True)
class ComparedMolecules:
    """The test molecules, compared with the training molecules.

    Attributes:
        smiles: M.
        nearness: of ``MOST_COMPARED`` at most, NaN for the others.
        warnings: M; "" where there is nothing to warn of.
        errors: float64 [M], as ``molecule_errors``.
    """

    smiles: list[str]
    nearness: Nearness
    warnings: list[str]
    errors: np.ndarray


def look_at_test(first: FirstModel, domain: Domain, final: Scores) -> ComparedMolecules:
    """Looks at the test molecules, of which ``final`` has the predictions."""
    smiles = first.smiles("test")
    mols = [read_smiles(text) for text in smiles]
    compared = evenly(len(smiles), MOST_COMPARED)
    similarity, distance = np.full(len(smiles), np.nan), np.full(len(smiles), np.nan)
    similarity[compared], molecules = domain.nearest(mols[row] for row in compared)
    nearest = dict(zip(compared.tolist(), molecules, strict=True))
    distance[compared] = domain.distance(first.embeddings("test")[compared])
    errors = molecule_errors(final.task, final.y, final.prediction)
    nearness = Nearness(similarity, [nearest.get(row, "") for row in range(len(smiles))], distance)
    return ComparedMolecules(smiles, nearness, domain.warnings(mols), errors)


def molecule_errors(task: TaskConfig, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The error of each molecule [M], NaN without a label: the mean over targets of absolute errors.

    Several regressions are measured in standard deviations of their training labels, so that they can be averaged.
    """
    errors = np.abs(np.subtract(y, prediction, dtype=np.float64))
    if not TASKS[task.kind].predicts_probabilities and len(task.targets) > 1:
        errors = errors / np.array(task.std)
    labelled = ~np.isnan(errors)
    return np.where(labelled.any(axis=1), np.nansum(errors, axis=1) / labelled.sum(axis=1).clip(min=1), np.nan)


def measure_distances(run: RunFolder, task: TaskConfig, looked: ComparedMolecules) -> dict:
    """Draws errors against distances; returns the mean error by similarity, and how many molecules are unfamiliar."""
    similarity, errors = looked.nearness.similarity, looked.errors
    plot_errors_by_distance(errors, similarity, looked.nearness.distance, error_words(task), run.distance_picture)
    bins = []
    for low, high in pairwise(SIMILARITIES):
        inside = (similarity >= low) & ((similarity < high) | (high == 1)) & ~np.isnan(errors)
        mean = float(errors[inside].mean()) if inside.any() else None
        bins.append({"from": low, "to": high, "n": int(inside.sum()), "error": mean})
    return {"unfamiliar": sum(map(bool, looked.warnings)), "error_by_similarity": bins}


def error_words(task: TaskConfig) -> str:
    """What ``molecule_errors`` are."""
    if TASKS[task.kind].predicts_probabilities:
        return "distance of the probability to the label"
    return "absolute error" if len(task.targets) == 1 else "absolute error, in standard deviations"
