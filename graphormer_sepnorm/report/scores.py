"""The sections of a report on scores: tables, the learning curve, and the reliability of intervals and probabilities.

Axis letters: M molecules, T targets, C columns of a target.
"""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.chem.fingerprints import RADIUS, SIZE
from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.domain import UNUSUAL, evenly, symbol_of
from graphormer_sepnorm.report.headline import few_words, gain_of
from graphormer_sepnorm.report.page import (
    DIAGONAL,
    MOST_POINTS,
    UNIT,
    Axis,
    Chart,
    Dot,
    Grid,
    Line,
    Section,
    line,
    words,
)
from graphormer_sepnorm.report.reported import Reported, Trained, constant_words
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS, binned
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.machines import Compared, completed, fit_machines
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, calibration_of
from graphormer_sepnorm.table_model.reference import landmarks
from graphormer_sepnorm.table_model.reliability import CURVE, USUAL_CONFIDENCE, coverage_curve, error_words
from graphormer_sepnorm.table_model.scores import (
    FEW_TESTED,
    MEAN,
    RESAMPLES,
    STACK,
    columns_of,
    interval,
    labels_words,
    or_none,
    paired_difference,
    resampled,
)
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.tasks.censored import log_likelihoods

PARTS = (0.25, 0.5)  # of the training molecules; the scores for all of them are known
LEAST_MOLECULES = 40  # fewest training molecules, of which a quarter still shows something
MOST_LABELS = 2_000  # most training molecules times targets: a few seconds
LEAST_BINNED = 20  # molecules, of which a mean error does not say more about chance than about the distance


def scores_section(page: Reported) -> Section:
    metric, weights, targets = page.task.metric, page.result.get("weights", {}), page.result["targets"]
    described = {name: MEMBERS[name].words(page.task, len(page.learnt)) for name in weights}
    grids = []
    for name, facts in targets.items():
        grids += [folds_grid(page, name)] if page.results else []
        grids.append(scores_grid(page, name, facts))
    if len(weights) > 1:
        members = {"member": list(weights), "weight": list(map(weight_words, weights.values()))}
        errors = shown_together(page.result["out_of_fold"][name][metric] for name in weights)
        members[f"{'mean ' * (len(targets) > 1)}out-of-fold {page.metric}"] = errors
        grids.append(Grid.of(members | {"description": list(described.values())}, "members"))
    if page.results:
        return Section("Scores", words("scores.folds", metric=page.metric, is_final=page.options.final), tuple(grids))
    facts = {"members": len(weights), "few": few_words(targets.values(), page.result), "only": described}
    return Section("Scores", words("scores.scores", metric=page.metric, resamples=RESAMPLES, **facts), tuple(grids))


def folds_grid(page: Reported, target: str) -> Grid:
    """The scores of a target, a row per fold."""
    metric, folds = page.task.metric, [result["targets"][target] for result in page.results.values()]
    columns: dict[str, list[str]] = {"fold": list(page.results)}
    columns["labels"] = [labels_words(fold, "label") for fold in folds]
    for name, title in {STACK: "prediction", "forest": "forest", MEAN: constant_words(page.task)}.items():
        if all(name in fold["scores"] for fold in folds):
            lead = folds[0]["scores"][STACK][metric]
            columns[title] = shown_together((fold["scores"][name][metric] for fold in folds), lead)
    return Grid.of(columns, page.title_of(target))


def scores_grid(page: Reported, target: str, facts: dict) -> Grid:
    """The ``scores_by_target`` of one, a row per prediction."""
    reported, metric, scores, decimals = TASKS[page.task.kind].reported, page.task.metric, facts["scores"], {}
    always = "" if page.is_regression else f": always {page.frequent_class(target)[1]}"
    names, intervals = {STACK: "prediction", MEAN: constant_words(page.task) + always}, facts.get("interval")
    bounds, (out_of_fold, where) = facts.get("bounds", {}), page.out_of_fold(target)
    members = [name for name in scores if name in names or len(scores) > len(names) + 1]  # one member is the prediction
    rows = [(names.get(name, f"only the {name}"), scores[name], bounds.get(name, {})) for name in members]
    rows += [(f"prediction, {where}", out_of_fold, out_of_fold)] if where else []
    columns = {"": [row for row, *_ in rows]}
    for name in reported if metric in reported else (metric, *reported):
        lead = scores[STACK][name]
        decimals[name] = decimals_for([lead] if lead else [each[name] for _, each, _ in rows])
        columns[METRICS[name].title] = [shown(each[name], decimals[name]) for _, each, _ in rows]
    if intervals is not None:
        cells = [shown_interval(intervals[name], decimals[metric]).split(" to ") for name in members]
        cells += [[""]] * (len(rows) - len(cells))  # a constant has the same ROC-AUC at both ends
        columns[f"95 % interval of the {METRICS[metric].title}"] = [" to ".join(dict.fromkeys(cell)) for cell in cells]
    if bounds:
        sides = [percent(each["right_side"]) if "right_side" in each else "" for *_, each in rows]
        orders = [shown(each["concordance"], 3) if "concordance" in each else "" for *_, each in rows]
        columns |= {"bounds on their side": sides, "concordance": orders}
    on = "all folds together" if page.results else labels_words(facts, "test label")
    return Grid.of(columns, f"{page.title_of(target)}, {on}")


def weight_words(weights: dict[str, float]) -> str:
    """The weight of a member by target, as a range if there are several."""
    return " to ".join(dict.fromkeys(f"{end(weights.values()):.2f}" for end in (min, max)))


def learning_section(page: Reported) -> Section | None:
    """The learning curve, if the kernel was fitted to parts of the training molecules."""
    if (curve := page.result.get("learning_curve")) is None:
        return None
    targets, about = list(curve["targets"].items())[:MAX_PANELS], (page.task.metric, curve["rows"])
    charts = (learning_chart(page.title_of(name), *about, facts) for name, facts in targets)
    paragraphs = words("scores.learning", folds=len(page.folds), has_others=len(page.model.members) > 1)
    return Section("Learning curve", paragraphs, charts=tuple(charts))


def learning_chart(title: str, metric: str, rows: list[int], facts: dict) -> Chart:
    """Scores with their intervals against the number of training rows; ``facts`` as ``curve_of_target``."""
    values, name = np.array(facts["values"], np.float64), METRICS[metric].title
    ends = np.array([each or [np.nan, np.nan] for each in facts["interval"]])
    x, decimals = Axis.around("training molecules", np.zeros(1), np.array(rows)), decimals_for([*values, *ends.ravel()])
    defined, dots = np.flatnonzero(np.isfinite(values)), []
    for place in defined.tolist():
        score, around = shown(values[place], decimals), shown_interval(facts["interval"][place], decimals)
        text = f"{rows[place]:,} training molecules\n{name} {score}\n95 % interval {around}"
        dots.append(Dot(rows[place], values[place], text, ends[place]))
    gain = gain_of(facts["last_doubling"], metric)
    last = None if gain is None else decimals_for(gain, facts["values"][-1])
    caption = line("scores.curve", fewer=rows[-2], all=rows[-1], metric=name, gain=gain, decimals=last)
    trend = {"trend": (np.array(rows)[defined], values[defined])}
    return Chart(title, x, Axis.around(name, values, ends), caption, trend, dots)


def learning_curve(trained: Trained) -> dict | None:
    """Mean numbers of training molecules, ``rows``, and ``targets``, by name the ``curve_of_target`` for these numbers.

    Only the kernel is fitted, to known similarities. None without one, for too few molecules and too many labels.
    """
    members, labels, folds = trained.fitted.model.members, trained.labels, trained.folds
    kernel = members.get("kernel")
    if not isinstance(kernel, KernelMember) or len(labels) < LEAST_MOLECULES or labels.y.size > MOST_LABELS:
        return None
    compared = Compared(trained.molecules.of(kernel.reference.similarities), landmarks(len(labels)))
    predictions = [kernel_out_of_fold(compared, labels, folds, part, trained.options.seed) for part in PARTS]
    predictions.append(trained.fitted.out_of_fold.by_member[list(members).index("kernel")])
    mean = np.mean([len(learnt) for learnt, _ in folds.parts()])
    values = each_by_itself(labels.task, np.stack(predictions))
    targets = {
        name: curve_of_target(labels, [each[:, columns] for each in values], columns, folds.predicted)
        for name, columns in columns_of(labels.task).items()
    }
    return {"rows": [round(part * mean) for part in (*PARTS, 1)], "targets": targets}


def kernel_out_of_fold(compared: Compared, labels: Labels, folds: Folds, part: float, seed: int) -> np.ndarray:
    """Out-of-fold predictions [M, T] of machines that are fitted to a part of the molecules outside the fold."""
    decisions = np.full_like(labels.y, np.nan)
    for number, (learnt, predicted) in enumerate(folds.parts()):
        order = np.random.default_rng([seed, number]).permutation(learnt)  # a half holds its quarter
        rows = np.sort(order[: round(part * len(learnt))])
        machines = fit_machines(compared, completed(compared, labels, rows), rows)
        decisions[predicted] = machines(compared.similarities[predicted])
    return as_values(decisions, calibration_of(labels, decisions, folds.predicted))


def curve_of_target(labels: Labels, predictions: list[np.ndarray], columns: slice, rows: np.ndarray) -> dict:
    """``values`` of the metric of predictions [M, C] for rows, each with its 95 % ``interval``, None where undefined.

    ``last_doubling`` is the ``paired_difference`` of the last two; censored labels add the mean ``log_likelihood``.
    """
    metric, scored = labels.task.metric, rows[~np.isnan(labels.y[rows, columns]).all(axis=1)]
    y, predicted = labels.y[scored, columns], [each[scored] for each in predictions]
    curve: dict = {"values": [or_none(METRICS[metric].or_nan(y, each)) for each in predicted]}
    drawn = resampled(metric, y, predicted) if len(y) >= 2 else np.full((1, len(predicted)), np.nan)
    change = paired_difference(METRICS[metric], y, predicted[-1], predicted[-2], drawn[:, :-3:-1])
    curve |= {"interval": [interval(each) for each in drawn.T], "last_doubling": change}
    if labels.bounded[rows, columns].any():
        assert labels.bounds is not None
        censored = labels.y[rows, columns][:, 0], labels.bounds[rows, columns][:, 0]
        means = (float(np.nanmean(log_likelihoods(*censored, each[rows, 0]))) for each in predictions)
        curve["log_likelihood"] = list(map(or_none, means))
    return curve


def trust_section(page: Reported) -> Section | None:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if page.results and not trust.keys() & {"coverage", "set_coverage", "brier"}:
        return None
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if TASKS[page.task.kind].calibrated_by is None:
        return Section("Probabilities", (*words("trust.uncalibrated"), *of_sets(page)))
    return Section("Intervals", words("trust.no_intervals", calibrated_by=trust["calibrated_by"]))


def intervals_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    levels = list(trust["coverage"])
    columns = {"confidence": [percent(float(level)) for level in levels]}
    for name in targets:
        columns[f"{name}: coverage"] = [percent(trust["coverage"][level][name]) for level in levels]
        columns[f"{name}: mean width"] = shown_together(trust["mean_width"][level][name] for level in levels)
    exact = (~np.isnan(page.labels.y[page.folds.predicted])).sum(axis=0).tolist()
    untested = [name for name in targets if not page.result["targets"][name]["n"]]
    has_undefined = any(None in widths.values() for widths in trust["mean_width"].values())
    counts = {"least": min(exact), "most": max(exact), "untested": untested}
    said = words("trust.intervals", trust=trust, has_undefined=has_undefined, test=page.test_word, **counts)
    charts: tuple[Chart, ...] = ()
    if not page.results:
        assert page.trust.intervals is not None
        charts = tuple(map(coverage_chart, page.panels, coverage_curve(page.trust.intervals, page.test).T))
    said += unlike_words(page, "Coverage can be below the confidence")
    return Section("Intervals", said, (Grid.of(columns),), charts)


def coverage_chart(target: str, shares: np.ndarray) -> Chart:
    """Shares of values inside their interval [C], NaN where undefined, against the confidence levels."""
    names = tuple(f"{100 * tick:.0f}" for tick in UNIT)
    axes = Axis("confidence level, %", UNIT, names), Axis("coverage, %", UNIT, names)
    finite = np.isfinite(shares)
    trend = np.array(CURVE)[finite].tolist(), shares[finite].tolist()
    texts = "{:.0f} % intervals\n{:.0f} % of the test values are inside"
    dots = [Dot(level, share, texts.format(100 * level, 100 * share)) for level, share in zip(*trend, strict=True)]
    return Chart(f"{target}: coverage", *axes, line("trust.covered"), {"guide": DIAGONAL, "trend": trend}, dots)


def unlike_words(page: Reported, consequence: str) -> tuple[str, ...]:
    """Why fewer test labels than promised can be inside, which is the consequence."""
    split = None if page.options.test_csv is not None or page.options.folds or page.results else page.options.split
    grow = page.result["trust"].get("errors_grow", False)
    return words("trust.unlike", consequence=consequence, split=split, errors_grow=grow)


def calibration_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    columns = {
        f"{title}, {stage}": shown_together(trust[name][stage][target] for target in targets)
        for name, title in (("calibration_error", "calibration error"), ("brier", "Brier score"))
        for stage in trust[name]
    }
    shown_columns = list(columns.values())
    is_same = len(columns) == 4 and shown_columns[::2] == shown_columns[1::2]
    few = {"few": few_words(page.result["targets"].values(), page.result), "test": page.test_word}
    said = words("trust.calibration", trust=trust, are_several=len(targets) > 1, is_same=is_same, **few)
    grid = Grid.of({"": list(targets), **columns})
    return Section("Calibration", (*said, *of_sets(page)), (grid,), tuple(reliability_charts(page)))


def of_sets(page: Reported) -> Iterator[str]:
    """A sentence on the sets of classes of each target, if there are sets."""
    trust, level = page.result["trust"], float(USUAL_CONFIDENCE)
    shares, single = (trust.get(name, {}).get(USUAL_CONFIDENCE, {}) for name in ("set_coverage", "one_class"))
    measured = {name: share for name, share in shares.items() if share is not None}
    for name, share in measured.items():
        target, scores = name if len(shares) > 1 else None, {"share": share, "single": single[name]}
        yield line("trust.sets", target=target, level=level, test=page.test_word, **scores)
    if measured:
        yield from unlike_words(page, "Sets can contain the class less often than promised")


def reliability_charts(page: Reported) -> Iterator[Chart]:
    """The share of positives of each target by mean predicted probability, before and after calibration."""
    text = "mean predicted probability {}\n{:.0f} % are positive"
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    for place, target in enumerate(page.panels):
        (y, after), (_, before) = page.labelled_pairs(place), page.labelled_pairs(place, page.plain)
        if len(y):
            lines: dict[str, Line] = {"guide": DIAGONAL, "mean": binned(before, y), "trend": binned(after, y)}
            points = zip(*lines["trend"], strict=True)
            dots = [Dot(x, share, text.format(shown(x, PROBABILITY_DECIMALS), 100 * share)) for x, share in points]
            yield Chart(f"{target}: calibration", *axes, line("trust.reliability"), lines, dots)


def distance_section(page: Reported) -> Section | None:
    trust, of = page.result["trust"], error_words(page.task, len(page.task.targets))
    title, limits = "Distance to the training molecules", limits_words(page)
    if "compared" not in trust:
        return Section(title, limits) if limits else None
    parts = [part for part in trust["error_by_similarity"] if part["n"]]
    columns = {
        "similarity": [f"{part['from']:g} to {part['to']:g}" for part in parts],
        "test molecules": [f"{part['n']:,}" for part in parts],
        f"mean {of}": shown_together(part["error"] for part in parts),
    }
    compared = trust["compared"] if trust["compared"] < len(page.looked.smiles) else None
    counts = {"count": trust["unfamiliar"], "compared": compared}
    paragraphs = words("trust.distance", has_conditions=bool(page.options.feature_columns), **counts)
    return Section(title, paragraphs + limits, (Grid.of(columns),), tuple(distance_charts(page)))


def limits_words(page: Reported) -> tuple[str, ...]:
    """The limits of the training domain; empty without a model."""
    if (trust := page.model.trust) is None:
        return ()
    elements = list(map(symbol_of, sorted({number for number, _ in trust.domain.kinds.tolist()})))
    return words("trust.limits", domain=trust.domain, elements=elements, share=1 - UNUSUAL, radius=RADIUS, bits=SIZE)


def distance_charts(page: Reported) -> Iterator[Chart]:
    """The errors against two distances, for as many molecules as the other charts show; means only of many errors."""
    near, errors, of = page.looked.nearness, page.looked.errors, error_words(page.task, len(page.task.targets))
    for x, title, label in (
        (near.similarity, "similarity", "largest Tanimoto similarity to a training molecule"),
        (near.distance, "distance of embeddings", "smallest distance to a training molecule"),
    ):
        finite = np.flatnonzero(np.isfinite(x) & np.isfinite(errors))
        if not len(finite):
            continue
        drawn = finite[evenly(len(finite), MOST_POINTS)]
        names = [f"{page.looked.smiles[row]}\n{of} {shown(errors[row])}" for row in drawn.tolist()]
        means: Line = binned(x[finite], errors[finite], LEAST_BINNED) if len(finite) >= FEW_TESTED else ((), ())
        groups = len(means[0])
        caption = line("trust.distances", groups=groups, size=len(finite) // max(groups, 1), title=title)
        axes = Axis.around(label, x[drawn]), Axis.around(of, errors[drawn], np.zeros(1))
        dots = list(map(Dot, x[drawn], errors[drawn], names))
        yield Chart(f"Errors by {title}", *axes, caption, {"mean": means} if groups else {}, dots)
