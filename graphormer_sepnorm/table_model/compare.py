"""Comparison of runs by their predictions for the same test rows. Axis letters: M test molecules, T targets, R runs."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown, shown_interval
from graphormer_sepnorm.runs.plots import new_figure
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.scored_runs import SEED, ScoredRun, check_same_task, on_shared_rows, read_scored_run
from graphormer_sepnorm.table_model.scores import (
    MOST_DRAWN,
    STACK,
    Predicted,
    columns_of,
    draws_of,
    interval,
    known,
    resampled,
    score,
    top_words,
)
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.tasks.censored import bound_scores, log_likelihoods

PICTURES = (".png", ".svg", ".pdf")
LEAST_LABELS = 2


def compare_runs(paths: Sequence[Path]) -> dict:
    """Scores of runs on the same test rows and their paired differences to the first, in JSON; None: undefined."""
    names = [str(path) for path in paths]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise InputError("name two or more different runs")
    runs = [read_scored_run(path) for path in paths]
    check_same_task(runs)
    test_rows = {run.name: len(run.molecules) for run in runs}
    runs, is_whole = on_shared_rows(runs)
    task = runs[0].task
    return {
        "settings": compare_settings(runs),
        "test_rows": {"of_runs": test_rows, "shared": None if is_whole else len(runs[0].molecules)},
        "metric": task.metric,
        "higher_is_better": METRICS[task.metric].higher_is_better,
        "known": {run.name: run.known for run in runs if run.known},
        "targets": {name: compare_target(runs, columns) for name, columns in columns_of(task).items()},
    }


def compare_settings(runs: Sequence[ScoredRun]) -> dict[str, dict]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: {run.name: run.settings.get(name) for run in runs} for name in names}
    different = {name: found for name, found in values.items() if len(set(map(str, found.values()))) > 1}
    return {"same": {name: runs[0].settings[name] for name in names if name not in different}, "different": different}


def compare_target(runs: Sequence[ScoredRun], columns: slice) -> dict:
    metric = runs[0].task.metric
    labelled = np.flatnonzero(~np.isnan(runs[0].y[:, columns]).all(axis=1))
    y = runs[0].y[labelled, columns]
    predictions = [run.prediction[labelled, columns] for run in runs]
    if len(y) < LEAST_LABELS:
        return {"n": len(y), "runs": {}}
    values = [score(METRICS[metric], y, each) for each in predictions]
    drawn = resampled(metric, y, predictions) if len(y) <= MOST_DRAWN else np.full((1, len(runs)), np.nan)
    with_bounds = compare_bounds(runs, columns)
    sign = 1 if METRICS[metric].higher_is_better else -1
    found = {}
    for place, run in enumerate(runs):
        found[run.name] = {
            "value": known(values[place]),
            "interval": interval(drawn[:, place]),
            **difference_to_first(values, drawn, place, sign),
        }
        if with_bounds:
            found[run.name]["bounds"] = with_bounds[place]
        predicted = Predicted(run.task, run.y, {STACK: run.prediction}, np.zeros(run.y.shape[1]), run.bounds)
        if tops := predicted.tops(columns):
            found[run.name]["top"] = tops
    return {"n": len(y), "runs": found}


def difference_to_first(values: Sequence[float], drawn: np.ndarray, place: int, sign: int) -> dict:
    """The difference of a score from that of the first run, and how often it is better in draws [draws, R]."""
    differences = drawn[:, place] - drawn[:, 0]
    defined = differences[~np.isnan(differences)]
    return {
        "difference": known(values[place] - values[0]),
        "difference_interval": interval(differences),
        "better": float((sign * defined > 0).mean()) if len(defined) else None,
    }


def compare_bounds(runs: Sequence[ScoredRun], columns: slice) -> list[dict]:
    """The ``BoundScores`` of each run for a target, with the difference of their likelihoods; empty without bounds."""
    y, bounds = runs[0].y[:, columns][:, 0], runs[0].bounds[:, columns][:, 0]
    predictions = [run.prediction[:, columns][:, 0] for run in runs]
    scores = [found for each in predictions if (found := bound_scores(y, bounds, each))]
    if not scores:
        return []
    likelihoods = np.stack([log_likelihoods(y, bounds, each) for each in predictions], axis=1)
    likelihoods = likelihoods[~np.isnan(likelihoods).any(axis=1)]
    draws = draws_of(len(likelihoods))[: None if len(likelihoods) <= MOST_DRAWN else 1]
    drawn = np.stack([likelihoods[rows].mean(axis=0) for rows in draws])
    values = [each.log_likelihood for each in scores]
    return [
        {name: known(value) for name, value in asdict(each).items()} | difference_to_first(values, drawn, place, 1)
        for place, each in enumerate(scores)
    ]


def comparison_lines(compared: dict) -> list[str]:
    lines = [*setting_lines(compared), *(f"{name}: {words}" for name, words in compared["known"].items())]
    rows = "molecules" if compared["test_rows"]["shared"] is None else "measurements"
    for target, found in compared["targets"].items():
        runs = found["runs"]
        if not runs:
            lines.append(f"{target}: too few test labels to compare ({found['n']})")
            continue
        lines.append(f"{target}: {METRICS[compared['metric']].title} on {found['n']} {rows}, 95 % intervals")
        width, decimals = max(map(len, runs)), decimals_of(list(runs.values()))
        for name, each in runs.items():
            line = f"  {name:{width}}  {with_range(each['value'], each['interval'], decimals)}"
            lines.append(line + ("" if each is next(iter(runs.values())) else difference_words(each, decimals)))
        lines += bound_lines(runs, width)
        tops = {name: "; ".join(top_words(each.get("top", {}))) for name, each in runs.items()}
        lines += [f"  {name:{width}}  {words}" for name, words in tops.items() if words]
    return lines


def difference_words(each: dict, decimals: int) -> str:
    """The difference to the first run, and how often the run is better, as the end of a line."""
    line = f"  difference {with_range(each['difference'], each['difference_interval'], decimals)}"
    if each["difference_interval"] == [0, 0]:
        return f"{line}, the same score in all draws"
    return line if each["better"] is None else f"{line}, better in {percent(each['better'])} of draws"


def setting_lines(compared: dict) -> Iterator[str]:
    for name, values in compared["settings"]["different"].items():
        yield f"different {name}: {', '.join(f'{value_words(value)} in {run}' for run, value in values.items())}"
    same = compared["settings"]["same"].items()
    if said := [f"{name} {value_words(value)}" for name, value in same if "." not in name and (value or name == SEED)]:
        yield f"the same: {', '.join(said)}"
    if (shared := compared["test_rows"]["shared"]) is not None:
        counts = ", ".join(f"{count:,} in {run}" for run, count in compared["test_rows"]["of_runs"].items())
        yield f"test rows: {counts}; compared on the {shared:,} measurements that all of them tested"


def value_words(value: object) -> str:
    if isinstance(value, dict):
        return ":".join(f"{100 * share:g}" for share in value.values())
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), str(value))


def bound_lines(runs: dict[str, dict], width: int) -> Iterator[str]:
    for place, (name, each) in enumerate((name, run["bounds"]) for name, run in runs.items() if "bounds" in run):
        if not place:
            yield f"  with {each['bounds']:.0f} bounds: mean log-likelihood, concordance and bounds on the right side"
        numbers = f"{each['log_likelihood']:.3f}  {shown(each['concordance'], 3)}  {percent(each['right_side'])}"
        yield f"  {name:{width}}  {numbers}{difference_words(each, 3) if place else ''}"


def decimals_of(runs: list[dict]) -> int:
    """The decimals of the numbers of one target: three significant digits of the first defined score."""
    scores = [each["value"] for each in runs if each["value"] is not None]
    others = [each["difference"] for each in runs]
    ends = [end for each in runs for name in ("interval", "difference_interval") for end in each[name] or ()]
    return decimals_for([*scores, *others, *ends], next(iter(scores), None))


def with_range(value: float | None, ends: list[float] | None, decimals: int) -> str:
    return shown(value, decimals) + ("" if ends is None else f" ({shown_interval(ends, decimals)})")


def plot_comparison(compared: dict, picture: Path) -> None:
    check_picture(picture)
    targets = {name: found["runs"] for name, found in compared["targets"].items() if found["runs"]}
    rows = max((len(runs) for runs in targets.values()), default=1)
    figure = new_figure(6, max(2, len(targets)) * (0.6 + 0.35 * rows))
    for place, (target, runs) in enumerate(targets.items(), 1):
        axes = figure.add_subplot(len(targets), 1, place)
        for row, each in enumerate(runs.values()):
            low, high = each["difference_interval"] or (np.nan, np.nan)
            axes.plot([low, high], [row, row], color="tab:blue", linewidth=3, solid_capstyle="round", alpha=0.5)
            axes.plot(np.nan if each["difference"] is None else each["difference"], row, "o", color="tab:blue")
        axes.axvline(0, color="tab:gray", linewidth=1)
        axes.set_yticks(range(len(runs)), list(runs))
        axes.invert_yaxis()
        better = "right" if compared["higher_is_better"] else "left"
        title = METRICS[compared["metric"]].title
        axes.set_xlabel(f"{target}: {title} minus that of the first run; better to the {better}")
    content = io.BytesIO()
    figure.savefig(content, dpi=150, format=picture.suffix[1:].lower())
    write_atomically(picture, content.getvalue())


def check_picture(picture: Path) -> None:
    if picture.suffix.lower() not in PICTURES:
        raise InputError(f"a plot is written as {', '.join(PICTURES)}, not as {picture.suffix or picture.name!r}")
