"""Reliability of intervals, probabilities and distances to the training molecules on test molecules.

Axis letters: M test molecules, T targets, G targets with the classes of one column as one, C confidence levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.classes import ClassSets, brier_score, by_class, calibration_error
from graphormer_sepnorm.predict.describing import nearness_to, same_conditions, under_other_conditions
from graphormer_sepnorm.predict.domain import evenly, joined
from graphormer_sepnorm.predict.intervals import Intervals, coverage
from graphormer_sepnorm.predict.predictors import Nearness
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.runs.numbers import counted, percent
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reference import Encoder
from graphormer_sepnorm.table_model.scores import MEAN, STACK, columns_of, label_word, test_word
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.tasks.censored import is_bounded
from graphormer_sepnorm.training.experiment import Scores

CONFIDENCES = (0.5, 0.8, 0.9, 0.95)
CURVE = tuple(step / 20 for step in range(1, 20))  # confidence levels of charts
SIMILARITIES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
MANY_BOUNDS = 0.15  # share of labels above which errors and slopes of exact labels mislead
USUAL_CONFIDENCE = "0.9"
SIGNIFICANCE = 0.05  # of a coverage below the confidence level, over all targets; of growing errors
LEAST_TESTED = 30  # molecules whose errors are compared with their similarities
LEAST_FACTOR = 1.1  # of too narrow intervals, that is shown with one decimal
CALIBRATED = 200  # draws of labels of which probabilities are right
TINY = 1e-300  # instead of an interval of no width
MOST_COMPARED = 2_000  # most test molecules that are compared with the training molecules


def measure_trust(trust: Trust, final: Scores, plain: np.ndarray) -> dict:
    """Coverage of intervals or sets, and of probabilities, ``plain`` before it, calibration; None where undefined."""
    targets = final.task.targets
    if trust.intervals is not None:
        held = {str(level): measure_interval(trust.intervals, level, final) for level in CONFIDENCES}
    else:
        held = {str(level): measure_sets(trust.class_sets, level, final) for level in CONFIDENCES}
        targets = tuple(columns_of(final.task))
    names = held[USUAL_CONFIDENCE]
    measures = {name: {level: values_by_target(targets, each[name]) for level, each in held.items()} for name in names}
    if trust.calibration is None:
        return measures
    return measure_calibration(final.task.targets, final.y, {"before": plain, "after": final.prediction}) | measures


def measure_calibration(targets: tuple[str, ...], y: np.ndarray, stages: dict[str, np.ndarray]) -> dict:
    """Two scores of the probabilities [M, T] of each stage, by target."""
    scores = {"calibration_error": calibration_error, "brier": brier_score}
    return {
        name: {stage: values_by_target(targets, score(y, each)) for stage, each in stages.items()}
        for name, score in scores.items()
    }


def measure_interval(intervals: Intervals, confidence: float, test: Scores) -> dict[str, np.ndarray]:
    """The coverage of intervals, of bounds too, their mean width, and the factor on it that would hold as promised.

    Each is [T], NaN where it is undefined or where there are no intervals at this confidence level."""
    names = ["coverage", "mean_width", "needed_factor"]
    names += [] if test.bounds is None else ["coverage_of_bounds", "coverage_of_all"]
    try:
        low, high = intervals.ends(confidence, test.prediction, test.spread, test.task.limits)
        half = intervals.half_widths(confidence, test.spread)
    except InputError:  # too few calibration molecules
        return dict.fromkeys(names, np.full(len(test.task.targets), np.nan))
    ratios = np.abs(np.subtract(test.y, test.prediction, dtype=np.float64)) / np.maximum(half, TINY)
    finite = [column[~np.isnan(column)] for column in ratios.T]
    needed = [np.quantile(each, confidence, method="inverted_cdf") if len(each) else np.nan for each in finite]
    measures = [coverage(test.y, low, high), (high - low).mean(axis=0), np.array(needed)]
    if test.bounds is not None:
        censored = is_bounded(test.y, test.bounds)
        reached = (high > test.bounds[..., 0]) & (low < test.bounds[..., 1])
        inside = np.where(censored, reached, (low <= test.y) & (test.y <= high))
        with np.errstate(invalid="ignore"):
            for rows in (censored, censored | ~np.isnan(test.y)):
                measures.append(np.where(rows, inside, 0).sum(axis=0) / rows.sum(axis=0))
    return dict(zip(names, measures, strict=True))


def measure_sets(sets: ClassSets | None, confidence: float, test: Scores) -> dict[str, np.ndarray]:
    """Shares [G] of labelled molecules whose class is in their set, and of sets with one class; NaN without labels."""
    if sets is None:
        return {}
    own = by_class(test.y, sets.scores.shape[1]) == 1
    held = sets.holds(test.prediction, confidence)
    labelled = own.any(axis=2)
    counts = np.where(labelled.any(axis=0), labelled.sum(axis=0), np.nan)
    measures = {"set_coverage": (own & held).any(axis=2), "one_class": labelled & (held.sum(axis=2) == 1)}
    return {name: each.sum(axis=0) / counts for name, each in measures.items()}


def coverage_curve(intervals: Intervals, test: Scores) -> np.ndarray:
    return np.stack([measure_interval(intervals, confidence, test)["coverage"] for confidence in CURVE])


def usual_confidence(trust: dict) -> str | None:
    """The usual confidence level of intervals, or the largest that the model supports; None without intervals."""
    coverage = trust.get("coverage", {})
    tested = {name for shares in coverage.values() for name, share in shares.items() if share is not None}
    possible = [level for level, shares in coverage.items() if tested and None not in map(shares.get, tested)]
    return USUAL_CONFIDENCE if USUAL_CONFIDENCE in possible else next(reversed(possible), None)


def low_coverage(result: dict) -> list[str]:
    """A sentence on each target whose intervals, or sets of classes, hold fewer test labels than they promise."""
    trust, counts = result.get("trust", {}), {name: facts["n"] for name, facts in result.get("targets", {}).items()}
    sentences, label, supported = [], label_word(result), usual_confidence(trust)
    level = supported or USUAL_CONFIDENCE
    for name, words in too_low(trust["coverage"][level] if supported else {}, counts, level).items():
        share, factor = percent(float(level)), trust.get("needed_factor", {}).get(level, {}).get(name)
        inside = f"only {words} {label}s of {name} are inside their {share} intervals, which are too narrow"
        wide = "" if factor is None else f"{factor:.{1 if factor >= LEAST_FACTOR else 2}f} times as wide"
        needed = wide and f": to contain {share}, they would have to be {wide}"
        sentences.append(f"{inside} for such molecules{needed}")
    sets, highest, usual = trust.get("set_coverage", {}), CONFIDENCES[-1], percent(float(USUAL_CONFIDENCE))
    for name, words in too_low(sets.get(USUAL_CONFIDENCE, {}), counts, USUAL_CONFIDENCE).items():
        held = f"only {words} {test_word(result)}molecules of {name} have their class in their {usual} set"
        share = sets.get(str(highest), {}).get(name)
        more = "" if share is None else f", and {percent(share)} have it in their {percent(highest)} set"
        sentences.append(f"{held}{more}")
    return sentences


def are_many(bounds: int, exact: int) -> bool:
    """Whether bounds are so many that errors and slopes of the exact labels mislead."""
    return bounds > MANY_BOUNDS * (bounds + exact)


def is_no_better(facts: dict, metric: str) -> bool:
    """Whether the model is not clearly better than the mean label; with many bounds, the likelihood decides."""
    bounds = facts.get("bounds", {})
    if "warning" in facts:
        return False
    if MEAN in bounds and are_many(bounds[MEAN]["bounds"], facts["n"]):
        ours, means = (bounds[each]["log_likelihood"] for each in (STACK, MEAN))
        return ours is not None and means is not None and ours <= means
    ends = facts.get("against_mean", {}).get("interval")
    return bool(ends) and (ends[0] <= 0 if METRICS[metric].higher_is_better else ends[1] >= 0)


def no_better(result: dict) -> list[str]:
    sentences, metric = [], result.get("metric", "")
    worse = {name: facts for name, facts in result.get("targets", {}).items() if is_no_better(facts, metric)}
    for name, facts in worse.items():
        ours, theirs = (facts["scores"][each][metric] for each in (STACK, MEAN))
        labels = counted(facts["n"], label_word(result))
        scores = f"{METRICS[metric].title} {ours:.3g}, of the mean {theirs:.3g}, {labels}"
        sentences.append(f"{name}: the model is not clearly better than the mean label for all molecules ({scores})")
    return sentences


def unjudged(result: dict) -> list[str]:
    """Why targets are not judged, or not scored."""
    targets, mean = result.get("targets", {}), f" is left out of the mean {METRICS[result['metric']].title}"
    reasons = {name: f": {facts['warning']}" for name, facts in targets.items() if "warning" in facts}
    left_out = {name: mean + reasons.get(name, f": {reason}") for name, reason in result.get("left_out", {}).items()}
    return [f"{name}{reason}" for name, reason in (reasons | left_out).items()]


def clear_error(y: np.ndarray, probability: np.ndarray) -> float | None:
    """The ``calibration_error`` of one target [M]; None if calibrated probabilities often have it by chance."""
    drawn = np.random.default_rng(0).random((len(y), CALIBRATED)) < probability[:, None]
    by_chance = calibration_error(drawn.astype(float), np.broadcast_to(probability[:, None], drawn.shape))
    (error,) = calibration_error(y[:, None], probability[:, None])
    return float(error) if len(y) and error > np.quantile(by_chance, 1 - SIGNIFICANCE) else None


def too_low(shares: dict[str, float | None], counts: dict[str, int], level: str) -> dict[str, str]:
    """The shares clearly below a confidence level by a one-sided binomial test, in words: "67 % of the 30"."""
    measured = {name: share for name, share in shares.items() if share is not None}
    return {
        name: f"{percent(share)} of the {counts[name]:,}"
        for name, share in measured.items()
        if scipy.stats.binom.cdf(round(share * counts[name]), counts[name], float(level)) < SIGNIFICANCE / len(measured)
    }


def values_by_target(targets: tuple[str, ...], values: np.ndarray) -> dict[str, float | None]:
    return {name: float(value) if np.isfinite(value) else None for name, value in zip(targets, values, strict=True)}


@dataclass(frozen=True)
class ComparedMolecules:
    smiles: list[str]
    nearness: Nearness  # similarities to the training molecules for at most ``MOST_COMPARED``, NaN for the others
    warnings: list[str]  # M warnings, "" if there is none
    errors: np.ndarray  # float64 [M], as ``molecule_errors``

    def by_similarity(self) -> dict:
        bins, similarity = [], self.nearness.similarity
        for low, high in pairwise(SIMILARITIES):
            errors = self.errors[(similarity >= low) & ((similarity < high) | (high == 1)) & ~np.isnan(self.errors)]
            mean = float(errors.mean()) if len(errors) else None
            bins.append({"from": low, "to": high, "n": len(errors), "error": mean})
        compared = np.flatnonzero(np.isfinite(similarity))
        return {
            "unfamiliar": sum(bool(self.warnings[row]) for row in compared),
            "compared": len(compared),
            "error_by_similarity": bins,
            "errors_grow": errors_grow(similarity, self.errors),
        }


def errors_grow(similarity: np.ndarray, errors: np.ndarray) -> bool:
    """Whether errors [M] clearly grow as similarities [M] fall, by ranks and by the means of both halves."""
    finite = np.isfinite(similarity) & np.isfinite(errors)
    similarity, errors = similarity[finite], errors[finite]
    if len(errors) < LEAST_TESTED or min(len(np.unique(similarity)), len(np.unique(errors))) < 3:
        return False
    far = similarity <= np.median(similarity)
    grow = errors[far].mean() > errors[~far].mean() if (~far).any() else False
    return bool(grow and scipy.stats.spearmanr(similarity, errors, alternative="less").pvalue < SIGNIFICANCE)


def compare_rows(
    model: TableModel, smiles: list[str], test: Scores, conditions: Sequence[tuple[str, ...]] = ()
) -> ComparedMolecules:
    assert model.trust is not None
    domain, compared = model.trust.domain, evenly(len(smiles), MOST_COMPARED)
    mols = [read_smiles(text) for text in smiles]
    chosen = [mols[row] for row in compared]
    embeddings = Encoder(model.embedder)(MoleculeFeatures([smiles[row] for row in compared]))
    encoded = model.conditions.encode_all([conditions[row] for row in compared])[0] if conditions else None
    matches = same_conditions(model.trust.rows, encoded)
    nearness, _ = nearness_to(domain, chosen, embeddings, matches)
    similarity, distance = np.full((2, len(smiles)), np.nan)
    similarity[compared], distance[compared] = nearness.similarity, nearness.distance
    nearest, others = [""] * len(smiles), [""] * len(smiles)
    for row, *each in zip(compared, nearness.molecule, under_other_conditions(nearness, matches), strict=True):
        nearest[row], others[row] = each
    warnings = domain.add_unlike(model.conditions.add_warnings(domain.warnings(mols), conditions), similarity)
    errors = molecule_errors(test.task, test.y, test.prediction)
    return ComparedMolecules(smiles, Nearness(similarity, nearest, distance), joined(warnings, others), errors)


def molecule_errors(task: TaskConfig, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Mean absolute error [M] over targets, of several in standard deviations of training labels; NaN: no label."""
    errors = np.abs(np.subtract(y, prediction, dtype=np.float64))
    if not TASKS[task.kind].predicts_probabilities and len(task.targets) > 1:
        errors = errors / np.array(task.std)
    labelled = ~np.isnan(errors)
    return np.where(labelled.any(axis=1), np.nansum(errors, axis=1) / labelled.sum(axis=1).clip(min=1), np.nan)


def error_words(task: TaskConfig, targets: int = 1) -> str:
    """The error of a molecule, of one target or as the mean over several."""
    if TASKS[task.kind].predicts_probabilities:
        return "distance between probability and label"
    return "absolute error" if targets == 1 else "absolute error, in standard deviations"
