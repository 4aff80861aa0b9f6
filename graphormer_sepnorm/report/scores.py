"""The sections of a report on scores: tables, the learning curve, and the reliability of intervals and probabilities.

Axis letters: M molecules, T targets, C columns of a target.
"""

from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.chem.fingerprints import RADIUS, SIZE
from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.domain import UNUSUAL, evenly, symbol_of
from graphormer_sepnorm.report.charts import DIAGONAL, MOST_DOTS, UNIT, Axis, Chart, Dot, Line
from graphormer_sepnorm.report.headline import gain_of
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported, Trained
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown, shown_interval, shown_together
from graphormer_sepnorm.runs.plots import MAX_PANELS, binned
from graphormer_sepnorm.table_model import scores as measures
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.machines import Compared, completed, fit_machines
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.kernel import KernelMember, as_values, calibration_of
from graphormer_sepnorm.table_model.reference import landmarks
from graphormer_sepnorm.table_model.reliability import CURVE, coverage_curve, error_words
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
        return Section("Scores", page.words("scores.folds"), tuple(grids))
    said = page.words("scores.scores", resamples=measures.RESAMPLES, described=described)
    return Section("Scores", said, tuple(grids))


def prediction_names(page: Reported) -> dict[str, str]:
    constant = "mean training label" if page.is_regression else "constant prediction"
    return {measures.STACK: "prediction", "forest": "forest", measures.MEAN: constant}


def folds_grid(page: Reported, target: str) -> Grid:
    """The scores of a target, a row per fold."""
    metric, folds = page.task.metric, [result["targets"][target] for result in page.results.values()]
    columns = {"fold": list(page.results), "labels": [measures.labels_words(fold, "label") for fold in folds]}
    for name, title in prediction_names(page).items():
        if all(name in fold["scores"] for fold in folds):
            lead = folds[0]["scores"][measures.STACK][metric]
            columns[title] = shown_together((fold["scores"][name][metric] for fold in folds), lead)
    return Grid.of(columns, page.title_of(target))


def scores_grid(page: Reported, target: str, facts: dict) -> Grid:
    """The ``Predicted.by_target`` of one, a row per prediction."""
    metric, reported, scores = page.task.metric, TASKS[page.task.kind].reported, facts["scores"]
    bounds, (out_of_fold, where), decimals = facts.get("bounds", {}), page.out_of_fold(target), {}
    titles = prediction_names(page) | {name: f"only the {name}" for name in MEMBERS}
    if not page.is_regression:
        titles[measures.MEAN] += f": always {page.frequent_class(target)[1]}"
    members = [name for name in scores if name not in MEMBERS or len(scores) > 3]  # one member is the prediction
    rows = [(titles[name], scores[name], bounds.get(name, {})) for name in members]
    rows += [(f"prediction, {where}", out_of_fold, out_of_fold)] if where else []
    columns = {"": [row for row, *_ in rows]}
    for name in reported if metric in reported else (metric, *reported):
        lead = scores[measures.STACK][name]
        decimals[name] = decimals_for([lead] if lead else [each[name] for _, each, _ in rows])
        columns[METRICS[name].title] = [shown(each[name], decimals[name]) for _, each, _ in rows]
    if "interval" in facts:
        cells = [shown_interval(facts["interval"][name], decimals[metric]).split(" to ") for name in members]
        cells += [[""]] * (len(rows) - len(cells))  # a constant has the same ROC-AUC at both ends
        columns[f"95 % interval of the {page.metric}"] = [" to ".join(dict.fromkeys(cell)) for cell in cells]
    if bounds:
        sides = [percent(each["right_side"]) if "right_side" in each else "" for *_, each in rows]
        columns["bounds on their side"] = sides
        columns["concordance"] = [shown(each["concordance"], 3) if "concordance" in each else "" for *_, each in rows]
    on = "all folds together" if page.results else measures.labels_words(facts, "test label")
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
    return Section("Learning curve", page.words("scores.learning"), charts=tuple(charts))


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
        for name, columns in measures.columns_of(labels.task).items()
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
    curve: dict = {"values": [measures.or_none(METRICS[metric].or_nan(y, each)) for each in predicted]}
    drawn = measures.resampled(metric, y, predicted) if len(y) >= 2 else np.full((1, len(predicted)), np.nan)
    change = measures.paired_difference(METRICS[metric], y, predicted[-1], predicted[-2], drawn[:, :-3:-1])
    curve |= {"interval": [measures.interval(each) for each in drawn.T], "last_doubling": change}
    if labels.bounded[rows, columns].any():
        assert labels.bounds is not None
        censored = labels.y[rows, columns][:, 0], labels.bounds[rows, columns][:, 0]
        means = (float(np.nanmean(log_likelihoods(*censored, each[rows, 0]))) for each in predictions)
        curve["log_likelihood"] = list(map(measures.or_none, means))
    return curve


def trust_section(page: Reported) -> Section | None:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if page.results and "set_coverage" not in trust:
        return None
    if TASKS[page.task.kind].calibrated_by is None:
        return Section("Probabilities", page.words("trust.uncalibrated") + page.words("trust.sets"))
    return Section("Intervals", page.words("trust.no_intervals"))


def intervals_section(page: Reported) -> Section:
    coverage, widths = (page.result["trust"][name] for name in ("coverage", "mean_width"))
    columns = {"confidence": [percent(float(level)) for level in coverage]}
    for name in page.task.targets:
        columns[f"{name}: coverage"] = [percent(shares[name]) for shares in coverage.values()]
        columns[f"{name}: mean width"] = shown_together(each[name] for each in widths.values())
    exact = (~np.isnan(page.labels.y[page.folds.predicted])).sum(axis=0).tolist()
    has_undefined = any(None in each.values() for each in widths.values())
    said = page.words("trust.intervals", least=min(exact), most=max(exact), has_undefined=has_undefined)
    charts: tuple[Chart, ...] = ()
    if not page.results:
        assert page.trust.intervals is not None
        charts = tuple(map(coverage_chart, page.panels, coverage_curve(page.trust.intervals, page.test).T))
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


def calibration_section(page: Reported) -> Section:
    trust, columns = page.result["trust"], {"": list(page.task.targets)}
    for name, title in (("calibration_error", "calibration error"), ("brier", "Brier score")):
        for stage, scores in trust[name].items():
            columns[f"{title}, {stage}"] = shown_together(scores.values())
    cells = list(columns.values())[1:]
    said = page.words("trust.calibration", is_same=len(cells) == 4 and cells[::2] == cells[1::2])
    charts = tuple(reliability_charts(page))
    return Section("Calibration", said + page.words("trust.sets"), (Grid.of(columns),), charts)


def reliability_charts(page: Reported) -> Iterator[Chart]:
    """The share of positives of each target by mean predicted probability, before and after calibration."""
    text = "mean predicted probability {}\n{:.0f} % are positive"
    axes = Axis("mean predicted probability", UNIT), Axis("share of positives", UNIT)
    for place, target in enumerate(page.panels):
        (y, after), before = page.labelled_pairs(place), page.test.plain[~np.isnan(page.test.y[:, place]), place]
        if len(y):
            lines: dict[str, Line] = {"guide": DIAGONAL, "mean": binned(before, y), "trend": binned(after, y)}
            points = zip(*lines["trend"], strict=True)
            dots = [Dot(x, share, text.format(shown(x, PROBABILITY_DECIMALS), 100 * share)) for x, share in points]
            yield Chart(f"{target}: calibration", *axes, line("trust.reliability"), lines, dots)


def distance_section(page: Reported) -> Section | None:
    trust, of = page.result["trust"], error_words(page.task, len(page.task.targets))
    limits: tuple[str, ...] = ()
    if page.model.trust is not None:
        elements = list(map(symbol_of, sorted({number for number, _ in page.model.trust.domain.kinds.tolist()})))
        limits = page.words("trust.limits", elements=elements, share=1 - UNUSUAL, radius=RADIUS, bits=SIZE)
    if "compared" not in trust:
        return Section("Distance to the training molecules", limits) if limits else None
    parts = [part for part in trust["error_by_similarity"] if part["n"]]
    columns = {
        "similarity": [f"{part['from']:g} to {part['to']:g}" for part in parts],
        f"{page.test_word}molecules": [f"{part['n']:,}" for part in parts],
        f"mean {of}": shown_together(part["error"] for part in parts),
    }
    said, charts = page.words("trust.distance") + limits, tuple(distance_charts(page))
    return Section("Distance to the training molecules", said, (Grid.of(columns),), charts)


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
        drawn = finite[evenly(len(finite), MOST_DOTS)]
        names = [f"{page.looked.smiles[row]}\n{of} {shown(errors[row])}" for row in drawn.tolist()]
        are_many = len(finite) >= measures.FEW_TESTED
        means: Line = binned(x[finite], errors[finite], LEAST_BINNED) if are_many else ((), ())
        groups = len(means[0])
        caption = line("trust.distances", groups=groups, size=len(finite) // max(groups, 1), title=title)
        axes = Axis.around(label, x[drawn]), Axis.around(of, errors[drawn], np.zeros(1))
        dots = list(map(Dot, x[drawn], errors[drawn], names))
        yield Chart(f"Errors by {title}", *axes, caption, {"mean": means} if groups else {}, dots)
