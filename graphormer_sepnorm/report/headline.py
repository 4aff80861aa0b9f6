"""The top of a report: the verdict on each target, a paragraph, cards with the most important numbers, and warnings."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.config import Scale, TaskConfig
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.report.page import Card
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.words import metric_words
from graphormer_sepnorm.runs.numbers import counted, decimals_for, percent, shown, shown_together
from graphormer_sepnorm.table_model import reliability
from graphormer_sepnorm.table_model import scores as measures
from graphormer_sepnorm.table_model.reliability import are_many, is_no_better
from graphormer_sepnorm.tables.remarks import of_labels, repeatability
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.tasks.censored import is_bounded
from graphormer_sepnorm.tasks.scales import falls, measured, unit_of

STRENGTHS = ((0.6, "well"), (0.3, "fairly"), (0.0, "weakly"))  # by the lower end of the interval of Spearman's rho
# Names of columns that are -log10 of a concentration in M, whose scale is not among the options.
MOLAR_NAMES = re.compile(r"p(IC|EC|AC|XC|GI|CC|ED|LC)50|pK[id]|pActivity|pchembl([ _]value)?", re.IGNORECASE)
FEW_LEARNT = 100
LEAST_SALTS = 5  # test molecules of several parts
IN_UNITS = ("mae", "rmse")  # metrics on the scale of the labels
DIFFERENT_SCALES = 5  # times the standard deviation of another target
UNBIASED = (0.8, 1.25)  # slopes of measured against predicted values of which users need not be warned
MOST_DRAWN = 2_000  # molecules that are resampled; with more, the interval is very narrow
LEAST_DRAWN = 10  # with fewer, resamples say nothing about the noise
FLAT = 0.6  # slope of predicted against measured values below which extremes are clearly missed


def verdict_of(page: Reported, target: str, facts: dict) -> dict:
    """The facts of the verdict on a target, from its ``Predicted.by_target``."""
    task, scale, rmse = page.task, scale_of(page.task, target), facts["scores"][measures.STACK].get("rmse")
    ranking = facts.get("ranking", {"metric": "spearman", "value": None, "interval": None})
    deviation = repeatability(page.options, page.labelled).get(target) or None
    decimals, (scores, where) = decimals_for([rmse, deviation], rmse), page.out_of_fold(target)
    factor = 10**rmse if rmse is not None and is_logarithm(task, target) else None
    told = {name: shown(scores[name], decimals if name in IN_UNITS else 2) for name in to_tell(page, facts, scores)}
    against_mean = gain_of(facts["against_mean"], task.metric) if "against_mean" in facts else None
    labels = page.labels.y[:, measures.columns_of(task)[target]]
    calibration: tuple[float | None, str] = None, ""
    if task.kind == "classification":
        *pairs, of_which = page.most_labelled(task.targets.index(target))
        calibration = reliability.clear_error(*pairs), of_which
    return {
        "target": target,
        "facts": facts,  # with the reason, ``warning``, if its labels say nothing
        "ranks": strength(ranking),  # "" where the order may be chance; None without an interval
        "ranking": ranking | {"title": METRICS[ranking["metric"]].title},  # the score of the order
        "rmse": rmse,
        "repeats": deviation,  # of replicate measurements
        "decimals": decimals,
        "factor": factor,  # of a concentration, which the RMSE of a logarithm is
        "example": apart(scale, factor, labels) if factor and falls(scale) else (),
        "calibration": calibration,  # mean error of probabilities, and of which
        "more": {METRICS[name].title: score for name, score in told.items()},  # scores out of fold, and of which labels
        "where": where,
        "is_worse": "warning" not in facts and against_mean is not None and against_mean.value < 0,  # than the mean
        "held": page.shares("coverage" if page.confidence else "set_coverage").get(target),  # share of labels inside
        "is_no_better": measures.MEAN in facts["scores"] and is_no_better(facts, task.metric),
    }


def to_tell(page: Reported, facts: dict, out_of_fold: Mapping[str, float | None]) -> list[str]:
    """The metrics whose scores out of fold are told: for few test labels, or outside the interval of the test score."""
    scores, ranking = {name: each for name, each in out_of_fold.items() if each is not None}, facts.get("ranking", {})
    intervals = {page.task.metric: facts.get("interval", {}).get(measures.STACK)}
    intervals[ranking.get("metric")] = ranking.get("interval")
    told = {name for name, ends in intervals.items() if ends and not ends[0] <= scores.get(name, ends[0]) <= ends[1]}
    told |= {"rmse" if "rmse" in scores else page.task.metric} if page.few(facts) else set()
    return [name for name in scores if name in told]


def scale_of(task: TaskConfig, target: str) -> Scale:
    return dict(zip(task.targets, task.scales, strict=False)).get(target, "")


def is_logarithm(task: TaskConfig, target: str) -> bool:
    """Whether a target is the logarithm of a measured value, by its scale or its name."""
    return bool(scale_of(task, target) or MOLAR_NAMES.fullmatch(target))


def apart(scale: Scale, factor: float, y: np.ndarray) -> tuple[str, str, str]:
    """Two concentrations near the median label, the second larger by a factor, and their unit."""
    smaller = float(f"{measured(np.nanmedian(y, keepdims=True).reshape(1, 1), [scale])[0, 0]:.1g}")
    return f"{smaller:,g}", f"{float(f'{smaller * factor:.2g}'):,g}", unit_of(scale)


def strength(ranking: dict) -> str | None:
    """How clearly a score of the order is better than chance, by the lower end of its interval."""
    if not ranking["interval"]:
        return None
    low = ranking["interval"][0] if ranking["metric"] == "spearman" else 2 * ranking["interval"][0] - 1
    return next((words for least, words in STRENGTHS if low > least), "")


class Estimate(NamedTuple):
    """A number with its 95 % interval: a gain, which is negative if a score is worse than another, or a slope."""

    value: float
    low: float
    high: float

    @property
    def is_biased(self) -> bool:
        """Whether the interval has no slope in common with ``UNBIASED``."""
        return self.high < UNBIASED[0] or self.low > UNBIASED[1]


def gain_of(facts: dict, metric: str) -> Estimate | None:
    """The gain in a ``paired_difference`` of a metric; None where it is undefined."""
    if facts["difference"] is None or facts["interval"] is None:
        return None
    sign = 1 if METRICS[metric].higher_is_better else -1
    return Estimate(sign * facts["difference"], *sorted(sign * end for end in facts["interval"]))


def verdicts(page: Reported) -> tuple[str, ...]:
    each = (verdict_of(page, target, facts) for target, facts in page.scored.items())
    return tuple(page.line("headline.verdict", verdict=verdict) for verdict in each)


def summary(page: Reported) -> str:
    if page.results:
        return page.line("scores.folds_summary")
    y, bounds = page.test.y, page.test.bounds
    scored = ~np.isnan(y) if bounds is None else ~np.isnan(y) | is_bounded(y, bounds)
    return page.line("headline.summary", tested=int(scored.any(axis=1).sum()))


def cards(page: Reported) -> tuple[Card, ...]:
    """A card for the mean score of several targets, one for each target, and those for the reliability."""
    targets, metric, found = page.result["targets"], page.task.metric, []
    if len(targets) > 1:
        forest = page.result.get("baseline", {}).get("random_forest", {}).get(metric)
        numbers = shown_together([page.result["value"], forest], page.result["value"])
        lines = page.words("headline.mean", forest=None if forest is None else numbers[-1], most=DIFFERENT_SCALES)
        title = f"Mean of {counted(len(targets) - len(page.result.get('left_out', {})), 'target')}"
        found.append(Card(title, numbers[0], metric_words(metric), lines))
    found += [target_card(page, target, facts) for target, facts in page.scored.items()]
    if page.confidence is not None:
        widths = page.shares("mean_width")
        width = next(iter(widths.values())) if len(widths) == 1 else None
        factor = 10 ** (width / 2) if width is not None and is_logarithm(page.task, next(iter(widths))) else None
        lines = page.words("headline.coverage", width=width, factor=factor)
        found.append(Card("Intervals", percent(page.mean_share("coverage")), "", lines))
    if any(share is not None for share in page.shares("set_coverage").values()):
        found.append(Card("Sets of classes", percent(page.mean_share("set_coverage")), "", page.words("headline.sets")))
    if len(targets) == 1 and not page.is_regression:
        ((target, facts),), y = targets.items(), page.test.y[~np.isnan(page.test.y).any(axis=1)]
        place, name = page.frequent_class(target)
        share = float(y[:, place].mean() if page.adds_up else (y == place).mean())
        correct = facts["scores"][measures.STACK]["multiclass-accuracy" if page.adds_up else "accuracy"]
        lines = page.words("headline.accuracy", name=name, share=share)
        found.append(Card("Correct classes", percent(correct), "", lines))
    return tuple(found)


def target_card(page: Reported, target: str, facts: dict) -> Card:
    """The score of one and its rivals, the mean over the folds that have one, and the score out of fold if told."""
    metric = page.task.metric
    value, interval = facts["scores"][measures.STACK][metric], facts.get("interval", {}).get(measures.STACK)
    rivals = {
        rival: (facts["scores"][rival][metric], gain_of(facts[against], metric))
        for against, rival in measures.RIVALS.items()
        if against in facts and "warning" not in facts
    }
    folds = {name: fold["targets"][target]["scores"][measures.STACK][metric] for name, fold in page.results.items()}
    known = [score for score in folds.values() if score is not None]
    several = [np.mean(known), np.std(known, ddof=1), min(known), max(known)] if len(known) > 1 else []
    numbers = [number for score, gain in rivals.values() for number in (score, *(gain or ()))]
    lead, (scores, where) = [*several, value][0], page.out_of_fold(target)
    decimals = decimals_for([*(interval or ()), *numbers, *several], lead)
    told: dict = {"out_of_fold": scores.get(metric), "where": where if to_tell(page, facts, scores) else ""}
    told |= {"facts": facts, "rivals": rivals, "folds": folds, "several": several}
    lines = page.words("headline.target", decimals=decimals, top=measures.top_words(facts.get("top", {})), **told)
    return Card(page.title_of(target), shown(lead, decimals), metric_words(metric), lines)


def notes(page: Reported) -> tuple[str, ...]:
    """Warnings to read before relying on the model, one sentence each."""
    idle = [name for name, weights in zip(page.model.members, page.model.weights, strict=True) if not weights.any()]
    logs = [network.read_metrics() for network in page.networks()] if "networks" in idle else []
    seconds = sum(line.get("seconds", 0) for lines in logs for line in lines)
    of_table = known_words(page.result), *of_labels(page.options, page.labelled)
    remarks = [*of_table, *reliability.low_coverage(page.result)]
    return (
        *page.words("headline.members", idle=idle, minutes=seconds / 60),
        *page.words("headline.few", enough=FEW_LEARNT),
        *(f"{remark[:1].upper()}{remark[1:]}." for remark in remarks if remark),
        *of_probabilities(page),
        *of_bias(page),
        *of_salts(page),
        *(page.words("scores.folds_note") if page.results else ()),
    )


def of_probabilities(page: Reported) -> Iterator[str]:
    """Targets of two classes whose probabilities are worse than the same probability for all molecules."""
    brier = page.result.get("trust", {}).get("brier", {}).get("after", {})
    for place, (target, score) in enumerate(brier.items()):
        constant = float(np.nanmean((page.test.y[:, place] - np.nanmean(page.labels.y[:, place])) ** 2))
        if score is not None and score > constant and "warning" not in page.result["targets"][target]:
            scores = shown_together([score, constant])
            if scores[0] != scores[1]:
                yield page.line("headline.probabilities", target=target, scores=scores)


def of_salts(page: Reported) -> Iterator[str]:
    """The errors of test molecules with several parts and of the others, if the former are larger."""
    errors = page.looked.errors
    several = np.array(["." in smiles.split(None, 1)[0] for smiles in page.looked.smiles], bool)
    salts, others = (errors[part & np.isfinite(errors)] for part in (several, ~several))
    if len(salts) >= LEAST_SALTS and len(others) and salts.mean() > others.mean():
        yield page.line("headline.salts", count=len(salts), errors=shown_together([salts.mean(), others.mean()]))


def resampled_slope(x: np.ndarray, y: np.ndarray) -> Estimate | None:
    """The slope of y against x [M] with its bootstrap interval over molecules; None for too few or equal x."""
    drawn, value = evenly(len(x), MOST_DRAWN), slope_of(x, y)
    if len(drawn) < LEAST_DRAWN or not np.isfinite(value):
        return None
    samples = np.random.default_rng(0).choice(drawn, (measures.RESAMPLES, len(drawn)))
    low, high = np.nanpercentile([slope_of(x[rows], y[rows]) for rows in samples], measures.PERCENTILES)
    return Estimate(value, float(low), float(high))


def slope_of(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of y against x [M]; NaN if fewer than two x differ."""
    if len(x) < 2 or x.min() == x.max():
        return float("nan")
    centred = x - x.mean()
    return float(centred @ y / (centred @ centred))


def slopes(page: Reported) -> Iterator[tuple[str, int, Estimate | None, float]]:
    """Each target of a regression with its place, and slopes of exact training labels and predictions out of fold.

    The first is that of labels against predictions, the other that of predictions against labels.
    """
    rows, labels = page.folds.predicted, page.labels
    for place, target in enumerate(page.task.targets if page.is_regression else ()):
        y, predicted = labels.y[:, place], page.fitted.out_of_fold.values[rows, place]
        bounded = 0 if labels.bounds is None else int(is_bounded(y, labels.bounds[:, place]).sum())
        if not are_many(bounded, int(np.isfinite(y).sum())):  # otherwise, exact labels have another slope than all
            both = np.isfinite(y[rows]) & np.isfinite(predicted)
            y, predicted = y[rows][both], predicted[both]
            yield target, place, resampled_slope(predicted, y), slope_of(y, predicted)


def of_bias(page: Reported) -> Iterator[str]:
    """A warning for each target of a regression with a strong bias, out of fold or on the test molecules."""
    for target, place, out_of_fold, _ in slopes(page):
        found = {"out of fold": out_of_fold}
        if not page.results:
            tested, predicted = page.labelled_pairs(place)
            found["on the test molecules"] = resampled_slope(predicted.astype(np.float64), tested)
        for where, slope in found.items():
            if slope is not None and slope.is_biased:
                yield page.line("headline.bias", target=target, slope=slope, where=where)


def of_extremes(page: Reported) -> Iterator[str]:
    """A paragraph for each target of a regression whose predictions miss extreme values without being biased."""
    for target, _, slope, spread in slopes(page):
        if spread < FLAT and not (slope is not None and slope.is_biased):
            yield page.line("headline.extremes", target=target, spread=spread, slope=slope)
