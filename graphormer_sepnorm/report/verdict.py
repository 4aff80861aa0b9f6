"""The verdict on top of a report: what the predictions of a target are good for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphormer_sepnorm.config import Scale, TaskConfig
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.runs.numbers import decimals_for
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE, is_no_better, usual_confidence
from graphormer_sepnorm.table_model.scores import MEAN, STACK
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.tasks.scales import falls, measured, unit_of

FEW_TESTED = 50
STRENGTHS = ((0.6, "well"), (0.3, "fairly"), (0.0, "weakly"))  # by the lower end of the interval of Spearman's rho
# Names of columns that are -log10 of a concentration in M, whose scale is not among the options.
MOLAR_NAMES = re.compile(r"p(IC|EC|AC|XC|GI|CC|ED|LC)50|pK[id]|pActivity|pchembl([ _]value)?", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """The facts of the verdict on a target of ``n`` exact test labels; its ``title`` if there are several."""

    title: str | None
    n: int
    ranks: str | None  # "" where the order may be chance; None without an interval
    ranking: str  # title of the score of the order
    value: float | None
    interval: list[float] | None
    rmse: float | None
    repeats: float | None  # deviation of replicate measurements
    factor: float | None  # of a concentration, which the RMSE of a logarithm is
    example: tuple[str, ...]  # two concentrations that far apart
    calibration: float | None  # mean error of the probabilities of two classes
    level: float | None  # confidence of the intervals, or sets of classes
    held: float | None  # share of labels inside
    rival: str | None  # constant prediction, if the model is not clearly better

    @property
    def decimals(self) -> int:
        """Of the error and of replicates."""
        return decimals_for([self.rmse, self.repeats], self.rmse)

    @property
    def sentence(self) -> str:
        return line("headline.verdict", verdict=self)


def verdict_of(
    task: TaskConfig,
    target: str,
    facts: dict,
    trust: dict,
    title: str | None = None,
    repeats: Mapping[str, float] | None = None,
    median: float | None = None,
) -> Verdict:
    """The verdict on a target, from its ``scores_by_target`` and ``measure_trust``; the example is near the median."""
    ranking = facts.get("ranking", {"metric": "spearman", "value": None, "interval": None})
    level, sets = usual_confidence(trust), trust.get("set_coverage", {}).get(USUAL_CONFIDENCE, {}).get(target)
    held = sets if level is None else trust["coverage"][level].get(target)
    rmse, scale = facts["scores"][STACK].get("rmse"), scale_of(task, target)
    factor = 10**rmse if rmse is not None and is_logarithm(task, target) else None
    calibration = trust.get("calibration_error", {}).get("after", {}).get(target)
    constant = "always the same probability" if TASKS[task.kind].predicts_probabilities else "the mean label"
    return Verdict(
        title,
        facts["n"],
        strength(ranking),
        METRICS[ranking["metric"]].title,
        ranking["value"],
        ranking["interval"],
        rmse,
        (repeats or {}).get(target) or None,
        factor,
        apart(scale, factor, median) if factor is not None and falls(scale) and median is not None else (),
        calibration if facts["n"] >= FEW_TESTED else None,  # of few it is mostly noise
        None if held is None else float(level or USUAL_CONFIDENCE),
        held,
        constant if MEAN in facts["scores"] and is_no_better(facts, task.metric) else None,
    )


def scale_of(task: TaskConfig, target: str) -> Scale:
    return dict(zip(task.targets, task.scales, strict=False)).get(target, "")


def is_logarithm(task: TaskConfig, target: str) -> bool:
    """Whether a target is the logarithm of a measured value, by its scale or its name."""
    return bool(scale_of(task, target) or MOLAR_NAMES.fullmatch(target))


def apart(scale: Scale, factor: float, median: float) -> tuple[str, str, str]:
    """Two concentrations near a median label, the second larger by a factor, and their unit."""
    smaller = float(f"{measured(np.array([[median]]), [scale])[0, 0]:.1g}")
    return f"{smaller:,g}", f"{float(f'{smaller * factor:.2g}'):,g}", unit_of(scale)


def strength(ranking: dict) -> str | None:
    """How clearly a score of the order is better than chance, by the lower end of its interval."""
    if not ranking["interval"]:
        return None
    low = ranking["interval"][0] if ranking["metric"] == "spearman" else 2 * ranking["interval"][0] - 1
    return next((words for least, words in STRENGTHS if low > least), "")
