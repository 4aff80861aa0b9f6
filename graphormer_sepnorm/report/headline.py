"""The top of a report: a paragraph, cards with the most important numbers, and warnings.

Axis letters: M training molecules, C columns of a target.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.report.bias import of_bias
from graphormer_sepnorm.report.glossary import metric_words
from graphormer_sepnorm.report.page import Card
from graphormer_sepnorm.report.reported import CUT, Reported, constant_words, frequent_class
from graphormer_sepnorm.report.verdict import verdict_of
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE, low_coverage
from graphormer_sepnorm.table_model.scores import (
    MEAN,
    MOST_DRAWN,
    STACK,
    columns_of,
    paired_difference,
    resampled,
    top_words,
)
from graphormer_sepnorm.table_model.stacking import combined, each_by_itself, stacking_weights
from graphormer_sepnorm.tables.remarks import of_labels, repeatability
from graphormer_sepnorm.tables.splits import SPLITTERS
from graphormer_sepnorm.tables.structures import known_words
from graphormer_sepnorm.tasks import METRICS, TASKS

FEW_TESTED = 50
FEW_LEARNT = 100
LEAST_SALTS = 5  # test molecules of several parts
RIVALS = {"against_forest": "forest", "against_mean": MEAN}
IN_UNITS = ("mae", "rmse")  # metrics on the scale of the labels
DIFFERENT_SCALES = 5  # times the standard deviation of another target
OF_NETWORKS = ("networks", "tuned kernel")


class Gain(NamedTuple):
    """How much better a score is than another, with the 95 % interval; negative if it is worse."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return not self.low <= 0 <= self.high

    def is_equal(self, decimals: int) -> bool:
        """Whether the gain is 0 with these decimals."""
        return not round(self.value, decimals)

    def ends(self, decimals: int) -> list[float]:
        """The interval of the size of the gain, better or worse, with these decimals."""
        return [self.low, self.high] if round(self.value, decimals) >= 0 else [-self.high, -self.low]


def gain_of(found: dict, metric: str) -> Gain | None:
    """The gain in a ``paired_difference`` of a metric; None where it is undefined."""
    if found["difference"] is None or found["interval"] is None:
        return None
    sign = 1 if METRICS[metric].higher_is_better else -1
    return Gain(sign * found["difference"], *sorted(sign * end for end in found["interval"]))


@dataclass(frozen=True)
class Rival:
    """A prediction that the model is compared with: its name, its score, and the gain of the model over it."""

    name: str
    score: float | None
    gain: Gain | None


@dataclass(frozen=True)
class TargetFacts:
    """The numbers of the card of a target: its labels, score, and decimals of all scores; whether it has an interval.

    With the ends of the interval if they are defined, the ``bound_scores`` of censored labels, the best molecules as
    ``top_words``, the factor that an error in the logarithm of a value is, the other predictions, and for few test
    labels the score out of fold.
    """

    n: int
    value: float | None
    decimals: int
    has_interval: bool
    interval: list[float] | None
    bounds: dict | None
    top: list[str]
    factor: float | None
    rivals: tuple[Rival, ...]
    out_of_fold: tuple[float | None, str] | None


def target_facts(page: Reported, target: str, facts: dict) -> TargetFacts:
    """The numbers of the card of a target; ``facts`` as ``scores_by_target``."""
    metric, value = page.task.metric, facts["scores"][STACK][page.task.metric]
    names = {"forest": "Forest", MEAN: constant_words(page.task).capitalize()}
    rivals = tuple(
        Rival(names[rival], facts["scores"][rival][metric], gain_of(facts[against], metric))
        for against, rival in RIVALS.items()
        if against in facts
    )
    interval = facts.get("interval", {}).get(STACK)
    numbers = [*(interval or ()), *(each.score for each in rivals)]
    numbers += [number for each in rivals for number in each.gain or ()]
    is_factor = page.is_logarithm(target) and metric in IN_UNITS and value is not None
    scores, where = page.out_of_fold(target) if facts["n"] < FEW_TESTED else ({}, "")
    return TargetFacts(
        facts["n"],
        value,
        decimals_for(numbers, value),
        "interval" in facts,
        interval,
        facts.get("bounds", {}).get(STACK),
        top_words(facts.get("top", {})),
        10**value if is_factor else None,
        rivals,
        (scores[metric], where) if scores else None,
    )


def verdicts(page: Reported) -> tuple[str, ...]:
    """The verdict on each target."""
    targets, repeats = page.result["targets"], repeatability(page.options, page.labelled)
    return tuple(
        verdict_of(
            page.task,
            target,
            facts,
            page.result["trust"],
            page.title_of(target) if len(targets) > 1 else None,
            repeats,
            float(np.nanmedian(page.labels.y[:, columns_of(page.task)[target]])),
        ).sentence
        for target, facts in list(targets.items())[:MAX_PANELS]
    )


def summary(page: Reported) -> str:
    """The first paragraph."""
    keys, option = page.labelled.structures.keys, None
    if "forest" not in page.model.members and "forest" not in page.fitted.left_out:
        members = ", ".join([*page.model.members, *page.fitted.left_out])
        option = {"kernel": "--quick", "networks": "--no-blend"}.get(members, "--no-baseline")
    titles = [page.title_of(target) for target in page.result["targets"]]
    counts = {"learnt": page.count_fitted, "tested": page.count_scored}
    one = "molecule" if len(set(keys)) == len(keys) else "row"
    return line("headline.summary", kind=page.task.kind, titles=titles, one=one, option=option, **counts)


def cards(page: Reported) -> tuple[Card, ...]:
    """A card for the mean score of several targets, one for each target, and one for the reliability."""
    targets, unit, found = page.result["targets"], metric_words(page.task.metric), []
    if len(targets) > 1:
        forest = page.result.get("baseline", {}).get("random_forest", {}).get(page.task.metric)
        value, rival = shown_together([page.result["value"], forest], page.result["value"])
        std = np.array(page.task.std)
        differ = page.task.metric in IN_UNITS and std.max() > DIFFERENT_SCALES * std.min()
        lines = words("headline.mean", forest=None if forest is None else rival, differ=differ)
        found.append(Card(f"Mean of {len(targets)} targets", value, unit, lines))
    for target, scores in list(targets.items())[:MAX_PANELS]:
        facts = target_facts(page, target, scores)
        value = shown(facts.value, facts.decimals)
        found.append(Card(page.title_of(target), value, unit, words("headline.target", card=facts)))
    if page.confidence is not None:
        trust, level = page.result["trust"], page.confidence
        widths = trust["mean_width"][level]
        found.append(coverage_card(level, trust["coverage"][level], widths, any(map(page.is_logarithm, widths))))
    sets, single = (
        page.result["trust"].get(name, {}).get(USUAL_CONFIDENCE, {}) for name in ("set_coverage", "one_class")
    )
    if any(share is not None for share in sets.values()):
        lines = words("headline.sets", level=float(USUAL_CONFIDENCE), single=mean_of(single))
        found.append(Card("Sets", percent(mean_of(sets)), "", lines))
    return (*found, *accuracy_cards(page))


def coverage_card(
    level: str, shares: dict[str, float | None], widths: dict[str, float], is_logarithm: bool = False
) -> Card:
    """A card on the mean coverage of the intervals at a confidence level; coverage is None without test labels.

    The mean width is shown if there is one target; ``is_logarithm``: it is that of the logarithm of the values.
    """
    width = next(iter(widths.values())) if len(widths) == 1 else None
    factor = 10 ** (width / 2) if width is not None and is_logarithm else None
    lines = words("headline.coverage", level=float(level), width=width, factor=factor)
    return Card("Intervals", percent(mean_of(shares)), "", lines)


def mean_of(shares: dict[str, float | None]) -> float:
    """The mean of the shares that are defined."""
    return float(np.mean([share for share in shares.values() if share is not None]))


def accuracy_cards(page: Reported) -> Iterator[Card]:
    """A card on the share of correct classes of a single classification."""
    if page.is_regression or len(page.result["targets"]) > 1:
        return
    y, prediction = page.test.y, page.test.prediction
    if not TASKS[page.task.kind].adds_up:
        y, prediction = np.hstack([1 - y, y]), np.hstack([prediction < CUT, prediction >= CUT])
    known = ~np.isnan(y).any(axis=1)
    correct = float((y[known].argmax(axis=1) == prediction[known].argmax(axis=1)).mean())
    place, name = frequent_class(page, next(iter(page.result["targets"])))
    lines = words("headline.accuracy", name=name, share=float(y[known].mean(axis=0)[place]))
    yield Card("Correct classes", percent(correct), "", lines)


def notes(page: Reported) -> tuple[str, ...]:
    """Warnings to read before relying on the model, one sentence each."""
    result = page.result
    known = known_words(result)
    return (
        *words("headline.members", left_out=result.get("left_out_members", {}), remarks=result.get("remarks", {})),
        *([f"{known}."] if known else ()),
        *of_idle(page),
        *of_few(page),
        *(f"{sentence}." for sentence in of_labels(page.options, page.labelled)),
        *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in low_coverage(result)),
        *of_probabilities(page),
        *of_bias(page),
        *of_salts(page),
        *of_networks(page),
    )


def of_idle(page: Reported) -> tuple[str, ...]:
    """Members without weight for any target, with the minutes that networks trained, as far as these are known."""
    by_member = zip(page.model.members, page.model.weights, strict=True)
    idle = [name for name, weights in by_member if not weights.any()]
    logs = (
        [network.read_metrics() for network in page.networks if network.metrics.exists()] if "networks" in idle else ()
    )
    seconds = sum(line.get("seconds", 0) for lines in logs for line in lines)
    return words("headline.idle", idle=idle, minutes=seconds / 60)


def of_few(page: Reported) -> tuple[str, ...]:
    """Few training or test molecules."""
    targets, options = page.result["targets"], page.options
    least, learnt = min(facts["n"] for facts in targets.values()), len(page.learnt)
    warnings = {page.title_of(name): facts["warning"] for name, facts in targets.items() if "warning" in facts}
    few = {"tested": least if least < FEW_TESTED else None, "learnt": learnt if learnt < FEW_LEARNT else None}
    has_folds = options.split in SPLITTERS and not options.folds and options.test_csv is None
    return words("headline.few", warnings=warnings, has_folds=has_folds, **few)


def of_probabilities(page: Reported) -> Iterator[str]:
    """Targets of two classes whose probabilities are worse than the same probability for all molecules."""
    brier = page.result.get("trust", {}).get("brier", {}).get("after", {})
    for place, (target, score) in enumerate(brier.items()):
        y, share = page.test.y[:, place], float(np.nanmean(page.labels.y[:, place]))
        constant = float(np.nanmean((y - share) ** 2))
        if score is not None and score > constant:
            numbers = dict(zip(("score", "constant"), shown_together([score, constant]), strict=True))
            yield line("headline.probabilities", title=page.title_of(target), **numbers)


def of_salts(page: Reported) -> Iterator[str]:
    """The errors of test molecules with several parts and of the others, if the former are larger."""
    errors = page.looked.errors
    several = np.array(["." in smiles.split(None, 1)[0] for smiles in page.looked.smiles], bool)
    salts, others = (errors[part & np.isfinite(errors)] for part in (several, ~several))
    if len(salts) >= LEAST_SALTS and len(others) and salts.mean() > others.mean():
        numbers = dict(zip(("error", "others"), shown_together([salts.mean(), others.mean()]), strict=True))
        yield line("headline.salts", count=len(salts), **numbers)


def of_networks(page: Reported) -> Iterator[str]:
    """Targets for which the model is not clearly better out of fold than without networks, nor than its kernel."""
    without, names = without_networks(page), list(page.model.members)
    if without is None or "kernel" not in names:
        return
    kernel = each_by_itself(page.task, page.fitted.out_of_fold.by_member)[names.index("kernel")]  # as --quick trains it
    for target, columns in list(columns_of(page.task).items())[:MAX_PANELS]:
        gain, over_kernel = (gain_out_of_fold(page, columns, others) for others in (without, kernel))
        if gain is not None and gain.low <= 0 and over_kernel is not None and over_kernel.low <= 0:
            weights = page.model.weights[[name in OF_NETWORKS for name in names], columns]
            numbers = {"gain": gain, "decimals": decimals_for(gain, page.out_of_fold(target)[0][page.task.metric])}
            facts = {"title": page.title_of(target), "have_weight": weights.any(), "metric": page.metric}
            yield line("headline.networks", **facts, **numbers)


def gain_out_of_fold(page: Reported, columns: slice, others: np.ndarray) -> Gain | None:
    """The gain of the model over other predictions [M, T], both out of fold; None if it is undefined."""
    rows, metric = page.folds.predicted, page.task.metric
    y, ours, theirs = (each[rows, columns] for each in (page.labels.y, page.fitted.out_of_fold.values, others))
    labelled = ~np.isnan(y).all(axis=1)
    if not 2 <= labelled.sum() <= MOST_DRAWN:
        return None
    y, ours, theirs = y[labelled], ours[labelled], theirs[labelled]
    drawn = resampled(metric, y, [ours, theirs])
    return gain_of(paired_difference(METRICS[metric], y, ours, theirs, drawn), metric)


def without_networks(page: Reported) -> np.ndarray | None:
    """The out-of-fold predictions [M, T] of a model without the members that need networks; None if all or none do."""
    names = list(page.model.members)
    kept = [place for place, name in enumerate(names) if name not in OF_NETWORKS]
    if len(kept) in (0, len(names)):
        return None
    by_member = page.fitted.out_of_fold.by_member[kept]
    shares = np.array([page.model.members[names[place]].share for place in kept])
    return combined(page.task, by_member, stacking_weights(page.labels, by_member, shares))
