"""The top of a report: a paragraph, cards with the most important numbers, and warnings.

Axis letters: M training molecules, C columns of a target.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphormer_sepnorm.report.bias import of_bias
from graphormer_sepnorm.report.glossary import metric_words
from graphormer_sepnorm.report.page import Card
from graphormer_sepnorm.report.reported import CUT, Reported, constant_words, frequent_class
from graphormer_sepnorm.runs.numbers import counted, decimals_for, percent, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE, low_coverage
from graphormer_sepnorm.table_model.scores import MEAN, MOST_DRAWN, STACK, columns_of, paired_difference, resampled
from graphormer_sepnorm.table_model.stacking import combined, each_by_itself, stacking_weights
from graphormer_sepnorm.tables.remarks import of_labels
from graphormer_sepnorm.tables.splits import SPLITTERS
from graphormer_sepnorm.tasks import METRICS, TASKS

FEW_TESTED = 50
FEW_LEARNT = 100
LEAST_SALTS = 5  # test molecules of several parts
RIVALS = {"against_forest": "forest", "against_mean": MEAN}
IN_UNITS = ("mae", "rmse")  # metrics on the scale of the labels
DIFFERENT_SCALES = 5  # times the standard deviation of another target
OF_NETWORKS = ("networks", "tuned kernel")
QUICK = " --quick trains only the kernel, in a fraction of the time."


def summary(page: Reported) -> str:
    """The first paragraph."""
    learnt, tested, keys = page.count_fitted, page.count_scored, page.labelled.structures.keys
    one = "molecule" if len(set(keys)) == len(keys) else "row"
    titles = ", ".join(page.title_of(target) for target in page.result["targets"])
    words = (
        f"A {page.task.kind} model of {titles}, fitted to {counted(learnt, one)} and tested on "
        f"{counted(tested, f'other {one}')}."
    )
    if "forest" in page.model.members or "forest" in page.fitted.left_out:
        return words
    members = ", ".join([*page.model.members, *page.fitted.left_out])
    option = {"kernel": "--quick", "networks": "--no-blend"}.get(members, "--no-baseline")
    return f"{words} There is no comparison with a forest, because {option} was used."


def cards(page: Reported) -> tuple[Card, ...]:
    """A card for the mean score of several targets, one for each target, and one for the reliability."""
    targets = list(page.result["targets"].items())
    found = [target_card(page, target, facts) for target, facts in targets[:MAX_PANELS]]
    mean = [mean_card(page, len(targets))] if len(targets) > 1 else []
    return (*mean, *found, *interval_cards(page), *set_cards(page), *accuracy_cards(page))


def mean_card(page: Reported, targets: int) -> Card:
    forest = page.result.get("baseline", {}).get("random_forest", {}).get(page.task.metric)
    value, rival = shown_together([page.result["value"], forest], page.result["value"])
    lines: tuple[str, ...] = () if forest is None else (f"Forest: {rival}.",)
    std = np.array(page.task.std)
    if page.task.metric in IN_UNITS and std.max() > DIFFERENT_SCALES * std.min():
        lines += ("The targets have different scales: those with the largest errors decide.",)
    return Card(f"Mean of {targets} targets", value, metric_words(page.task.metric), lines)


def target_card(page: Reported, target: str, facts: dict) -> Card:
    """The score of a target, with its interval, and how much better it is than the forest and the mean."""
    value = facts["scores"][STACK][page.task.metric]
    decimals = decimals_for(numbers_of(facts, page.task.metric), value)
    lines = [f"On {counted(facts['n'], 'test label')}."]
    if "interval" in facts:
        ends = shown_interval(facts["interval"][STACK], decimals)
        lines = [f"95 % interval {ends}, on {counted(facts['n'], 'test label')}."]
    if (bounds := facts.get("bounds", {}).get(STACK)) is not None:
        lines.append(
            f"Besides, {counted(bounds['bounds'], 'bound')}: {percent(bounds['right_side'])} are predicted on their "
            f"side; concordance {shown(bounds['concordance'], 3)}."
        )
    if page.is_logarithm(target) and page.task.metric in IN_UNITS and value is not None:
        lines.append(f"An error of {shown(value, decimals)} in the logarithm is a factor of {10**value:.2g}.")
    lines += [against_words(page, facts, against, decimals) for against in RIVALS if against in facts]
    if facts["n"] < FEW_TESTED:
        scores, where = page.out_of_fold(target)
        lines.append(f"{where[:1].upper()}{where[1:]}: {shown(scores[page.task.metric], decimals)}.")
    return Card(page.title_of(target), shown(value, decimals), metric_words(page.task.metric), tuple(lines))


def numbers_of(facts: dict, metric: str) -> Iterator[float | None]:
    """The numbers of the card of a target next to its score."""
    yield from (facts.get("interval", {}).get(STACK) or ())
    for against, rival in RIVALS.items():
        if against in facts:
            yield from (facts["scores"][rival][metric], facts[against]["difference"])
            yield from facts[against]["interval"] or ()


def against_words(page: Reported, facts: dict, against: str, decimals: int) -> str:
    """A sentence on the paired difference of the score from that of the forest or the mean."""
    rival = RIVALS[against]
    name = constant_words(page.task).capitalize() if rival == MEAN else "Forest"
    words = f"{name}: {shown(facts['scores'][rival][page.task.metric], decimals)}."
    gain = gain_of(facts[against], page.task.metric)
    if gain is None:
        return f"{words} The difference is not defined."
    size = gain.size(decimals)
    chance = "" if gain.is_clear or size == "equal" else ", but this may be chance"
    return f"{words} The model is {size}{chance} ({gain.ends(decimals)})."


class Gain(NamedTuple):
    """How much better a score is than another, with the 95 % interval; negative if it is worse."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not contain 0."""
        return not self.low <= 0 <= self.high

    def size(self, decimals: int) -> str:
        """The gain with these decimals, as "better by 0.25", "worse by 0.25" or "equal"."""
        if not round(self.value, decimals):
            return "equal"
        return f"{'better' if self.value > 0 else 'worse'} by {shown(abs(self.value), decimals)}"

    def ends(self, decimals: int) -> str:
        """The interval of ``size`` with these decimals."""
        ends = [self.low, self.high] if round(self.value, decimals) >= 0 else [-self.high, -self.low]
        return f"95 % interval {shown_interval(ends, decimals)}"


def gain_of(found: dict, metric: str) -> Gain | None:
    """The gain in a ``paired_difference`` of a metric; None where it is undefined."""
    if found["difference"] is None or found["interval"] is None:
        return None
    sign = 1 if METRICS[metric].higher_is_better else -1
    return Gain(sign * found["difference"], *sorted(sign * end for end in found["interval"]))


def interval_cards(page: Reported) -> Iterator[Card]:
    """A card on the coverage of the intervals, if there are intervals."""
    if page.confidence is None:
        return
    trust = page.result["trust"]
    widths = trust["mean_width"][page.confidence]
    is_logarithm = any(map(page.is_logarithm, widths))
    yield coverage_card(page.confidence, trust["coverage"][page.confidence], widths, is_logarithm)


def coverage_card(
    level: str, shares: dict[str, float | None], widths: dict[str, float], is_logarithm: bool = False
) -> Card:
    """A card on the mean coverage of the intervals at a confidence level.

    Args:
        level: the confidence level.
        shares: the coverage of each target, None for one without test labels.
        widths: the mean width for each target, which is shown if there is one target; empty: unknown.
        is_logarithm: whether the target is modelled by the logarithm of the values in the table.
    """
    lines = [f"of the test values are inside their {percent(float(level))} interval."]
    if len(widths) == 1:
        (width,) = widths.values()
        factor = f", about a factor of {10 ** (width / 2):.2g} up or down" if is_logarithm else ""
        lines.append(f"The intervals are {shown(width)} wide on average{factor}.")
    known = [share for share in shares.values() if share is not None]
    return Card("Intervals", percent(float(np.mean(known))), "", tuple(lines))


def set_cards(page: Reported) -> Iterator[Card]:
    """A card on the sets of classes, if there are sets."""
    found = page.result["trust"]
    shares, single = (
        [share for share in found.get(name, {}).get(USUAL_CONFIDENCE, {}).values() if share is not None]
        for name in ("set_coverage", "one_class")
    )
    if shares:
        lines = (
            f"of the test molecules have their class in their {percent(float(USUAL_CONFIDENCE))} set: the classes "
            "that cannot be ruled out at this confidence.",
            f"{percent(float(np.mean(single)))} of the sets have one class.",
        )
        yield Card("Sets", percent(float(np.mean(shares))), "", lines)


def accuracy_cards(page: Reported) -> Iterator[Card]:
    """A card on the share of correct classes of a single classification."""
    if page.is_regression or len(page.result["targets"]) > 1:
        return
    y, prediction = page.test.y, page.test.prediction
    if not TASKS[page.task.kind].adds_up:
        y, prediction = np.hstack([1 - y, y]), np.hstack([prediction < CUT, prediction >= CUT])
    known = ~np.isnan(y).any(axis=1)
    correct = (y[known].argmax(axis=1) == prediction[known].argmax(axis=1)).mean()
    place, name = frequent_class(page, next(iter(page.result["targets"])))
    share = f"{100 * y[known].mean(axis=0)[place]:.0f} %"
    line = f"of the test molecules; the constant prediction, always {name}, would have {share}."
    yield Card("Correct classes", f"{100 * correct:.0f} %", "", (line,))


def notes(page: Reported) -> tuple[str, ...]:
    """Warnings to read before relying on the model, one sentence each."""
    return (
        *of_members(page),
        *of_few(page),
        *(f"{sentence}." for sentence in of_labels(page.options, page.labelled)),
        *of_intervals(page),
        *of_probabilities(page),
        *of_bias(page),
        *of_salts(page),
        *of_networks(page),
    )


def of_members(page: Reported) -> Iterator[str]:
    for name, reason in page.result.get("left_out_members", {}).items():
        yield f"The member {name} was left out: {reason}."
    for remark in page.result.get("remarks", {}).values():
        yield f"{remark[:1].upper()}{remark[1:]}."


def of_few(page: Reported) -> Iterator[str]:
    """Few training or test molecules."""
    for target, facts in page.result["targets"].items():
        if "warning" in facts:
            yield f"{page.title_of(target)}: {facts['warning']}."
    least = min(facts["n"] for facts in page.result["targets"].values())
    if least < FEW_TESTED:
        advice = " Train once more with --folds 5 --out OTHER to test every molecule." * (
            page.options.split in SPLITTERS and not page.options.folds and page.options.test_csv is None
        )
        yield f"The test set is small ({counted(least, 'label')}), so the score is uncertain.{advice}"
    if len(page.learnt) < FEW_LEARNT:
        yield (
            f"There are only {counted(len(page.learnt), 'training molecule')}: more measurements are likely to help "
            "more than another model."
        )


def of_intervals(page: Reported) -> Iterator[str]:
    """Targets whose intervals or sets contain fewer test labels than they promise."""
    for sentence in low_coverage(page.result):
        yield f"{sentence[:1].upper()}{sentence[1:]}."


def of_probabilities(page: Reported) -> Iterator[str]:
    """Targets of two classes whose probabilities are worse than the same probability for all molecules."""
    brier = page.result.get("trust", {}).get("brier", {}).get("after", {})
    for place, (target, score) in enumerate(brier.items()):
        y, share = page.test.y[:, place], float(np.nanmean(page.labels.y[:, place]))
        constant = float(np.nanmean((y - share) ** 2))
        if score is not None and score > constant:
            found, instead = shown_together([score, constant])
            yield (
                f"{page.title_of(target)}: on the test molecules, the probabilities are worse than the constant "
                f"prediction (Brier score {found} instead of {instead}): use them only to rank molecules."
            )


def of_salts(page: Reported) -> Iterator[str]:
    """The errors of test molecules with several parts and of the others, if the former are larger."""
    errors = page.looked.errors
    several = np.array(["." in smiles.split(None, 1)[0] for smiles in page.looked.smiles], bool)
    salts, others = (errors[part & np.isfinite(errors)] for part in (several, ~several))
    if len(salts) >= LEAST_SALTS and len(others) and salts.mean() > others.mean():
        of_those, of_rest = shown_together([salts.mean(), others.mean()])
        yield (
            f"{counted(len(salts), 'test molecule')} are salts or mixtures: their mean error is {of_those}, "
            f"that of the others is {of_rest}. --standardize parent reads only the largest part of each."
        )


def of_networks(page: Reported) -> Iterator[str]:
    """Targets for which the model is not clearly better out of fold than without networks, nor than its kernel."""
    without, kernel = without_networks(page), only_kernel(page)
    if without is None or kernel is None:
        return
    for target, columns in list(columns_of(page.task).items())[:MAX_PANELS]:
        gain, over_kernel = (gain_out_of_fold(page, columns, others) for others in (without, kernel))
        if gain is not None and gain.low <= 0 and over_kernel is not None and over_kernel.low <= 0:
            shares = page.model.weights[[name in OF_NETWORKS for name in page.model.members], columns]
            words = "show no clear gain" if shares.any() else "have the weight 0"
            decimals = decimals_for(gain, page.out_of_fold(target)[0][page.task.metric])
            size = gain.size(decimals)
            change = "the same with and without them" if size == "equal" else f"{size} with them than without"
            yield (
                f"{page.title_of(target)}: the networks {words}. Out of fold, the {page.metric} is {change} "
                f"({gain.ends(decimals)}).{QUICK}"
            )


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
    if not kept or len(kept) == len(names):
        return None
    by_member = page.fitted.out_of_fold.by_member[kept]
    shares = np.array([page.model.members[names[place]].share for place in kept])
    return combined(page.task, by_member, stacking_weights(page.labels, by_member, shares))


def only_kernel(page: Reported) -> np.ndarray | None:
    """The out-of-fold predictions [M, T] of a model of only the kernel, as --quick trains it; None without a kernel."""
    names = list(page.model.members)
    if "kernel" not in names:
        return None
    return each_by_itself(page.task, page.fitted.out_of_fold.by_member)[names.index("kernel")]
