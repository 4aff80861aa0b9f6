"""Comparison of runs by their predictions for the same test rows. Axis letters: M test molecules, T targets, R runs."""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphormer_sepnorm.chem.properties import family_of, molecule_key, parent_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig, read_config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import decimals_for, percent, shown, shown_interval
from graphormer_sepnorm.runs.plots import new_figure
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.scores import (
    STACK,
    Predicted,
    columns_of,
    draws_of,
    facts_of_labels,
    informative,
    interval,
    or_none,
    resampled,
    top_words,
)
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import DUPLICATES, KEPT_IN, TABLE, TARGET, kept_facts
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tasks import METRICS
from graphormer_sepnorm.tasks.censored import log_likelihoods

SEED = "--seed"
NOT_COMPARED = "their scores cannot be compared"
OTHER_ROWS = "train both on one table with the same --split and --seed, or evaluate --csv both on other measurements"
PICTURES = (".png", ".svg", ".pdf")
LEAST_LABELS, LEAST_TOLD = 2, 20  # that are scored, and that tell which is better; of classes, as if they were equal


@dataclass(frozen=True)
class ScoredRun:
    name: str
    dataset: str
    known: str  # the sentence of ``known_words``
    settings: dict[str, Any]  # by the names of options
    measured: dict[str, list[list[str]]]  # by number, the rows of the source table that a row is the mean of
    rows: list[list[str]]  # of ``predictions.csv``, in ascending order
    predicted: Predicted

    @property
    def task(self) -> TaskConfig:
        return self.predicted.task

    def with_rows(self, rows: list[list[str]]) -> "ScoredRun":
        ordered = sorted(rows, key=lambda row: int(row[0]))
        return replace(self, rows=ordered, predicted=Predicted.of_lines(self.task, ordered))

    def by_measurement(self) -> "ScoredRun":
        """The rows of the source table: each has its own label, and the prediction of the row it was averaged in."""
        end = 3 + len(self.task.targets)
        own = ((row, each) for row in self.rows for each in self.measured.get(row[0], [row]))
        return self.with_rows([[*each[:end], *row[end:]] for row, each in own])


def read_scored_run(path: Path) -> ScoredRun:
    run, facts = RunFolder(path), (path / TABLE).with_suffix(".json")
    if run.is_from_python:
        raise InputError(f"{path} was saved from Python and has no test molecules: compare runs of train FILE")
    if run.fold(0).path.is_dir():
        raise InputError(f"{path} holds folds: name one of them, such as {run.fold(0)}")
    if not (run.test.exists() and run.predictions.exists()):
        raise InputError(f"{path} has no test predictions: name a finished run folder, as train writes it")
    kept = kept_facts(facts)
    task = kept[0] if kept else read_config(run.config).task
    measured = defaultdict(list)
    try:
        result = json.loads(run.test.read_bytes())
        for line in saved_lines(path / DUPLICATES) if (path / DUPLICATES).exists() else ():
            if KEPT_IN in line:  # an earlier version wrote no such column
                labels = [line[TARGET + name] for name in task.targets]
                measured[line[KEPT_IN]].append([line["row"], line["smiles"], line["split"], *labels])
        averaged = {number: of_mean for number, of_mean in measured.items() if len(of_mean) > 1}
        settings, nothing = dict(settings_of_run(run, facts, result)), Predicted.of_lines(task, [])
        scored = ScoredRun(str(path), str(result["dataset"]), known_words(result), settings, averaged, [], nothing)
        columns = ["row", "smiles", "split", *task.targets, *(f"{name}_predicted" for name in task.targets)]
        return scored.with_rows([[line[name] for name in columns] for line in saved_lines(run.predictions)])
    except (ValueError, KeyError, TypeError):
        advice = "remove it, and score the run again with train --resume"
        raise InputError(f"{run.predictions} or {run.test} is damaged: {advice}") from None


def saved_lines(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def settings_of_run(run: RunFolder, facts: Path, result: dict) -> Iterator[tuple[str, Any]]:
    options = json.loads(facts.read_bytes()).get("options", {}) if facts.exists() else {}
    yield "table", options.get("path")
    yield from ((each.name, options[each.field]) for each in declared(TableOptions) if each.field in options)
    yield SEED, options.get("seed", result.get("seed"))
    yield "members", list(result.get("members", {}))
    if run.config.exists():
        config = asdict(read_config(run.config))
        yield from ((f"{part}.{name}", value) for part in ("model", "train") for name, value in config[part].items())


def on_shared_rows(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], bool]:
    """Runs on the test rows that all have in common, and whether these are all rows of all of them."""
    first = runs[0]
    if all(same_rows(first, other) and same_labels(first, other) for other in runs[1:]):
        return list(runs), True
    apart = [run.by_measurement() for run in runs]
    shared = set.intersection(*({row[0] for row in run.rows} for run in apart))
    taken = [run.with_rows([row for row in run.rows if row[0] in shared]) for run in apart]
    for other in taken[1:]:
        if not shared or not same_rows(taken[0], other):
            raise InputError(f"{first.name} and {other.name} have different test rows: {OTHER_ROWS}")
        if not same_labels(taken[0], other):
            raise InputError(f"{first.name} and {other.name} have different test labels, so {NOT_COMPARED}")
    return taken, False


def same_labels(first: ScoredRun, other: ScoredRun) -> bool:
    return np.array_equal(first.predicted.labels, other.predicted.labels, equal_nan=True)


def same_rows(first: ScoredRun, other: ScoredRun) -> bool:
    """Whether two runs were tested on the same rows, whose molecules may have been standardized differently."""
    if len(first.rows) != len(other.rows):
        return False
    shift = int(other.rows[0][0]) - int(first.rows[0][0]) if first.rows else 0
    return all(
        int(number) + shift == int(other_number) and (smiles == drawn or family(smiles) == family(drawn))
        for (number, smiles, *_), (other_number, drawn, *_) in zip(first.rows, other.rows, strict=True)
    )


def family(smiles: str) -> str:
    """The ``family_of`` a molecule: standardization may remove salts, charges, stereo and isotopes."""
    mol = read_smiles(smiles)
    return family_of(parent_key(mol, molecule_key(mol)))


def compare_runs(paths: Sequence[Path]) -> dict:
    """Scores of runs on the same test rows and their paired differences to the first, in JSON; None: undefined."""
    names = [str(path) for path in paths]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise InputError("name two or more different runs")
    runs = [read_scored_run(path) for path in paths]
    facts = [(run.task.targets, run.task.kind, run.task.metric, run.dataset) for run in runs]
    for name, theirs in zip(names, facts, strict=True):
        for what, ours, other in zip(("targets", "tasks", "metrics", "datasets"), facts[0], theirs, strict=True):
            if ours != other:
                raise InputError(f"{names[0]} and {name} have different {what}, so {NOT_COMPARED}")
    test_rows = {run.name: len(run.rows) for run in runs}
    runs, is_whole = on_shared_rows(runs)
    task = runs[0].task
    return {
        "settings": compare_settings(runs),
        "test_rows": {"of_runs": test_rows, "shared": None if is_whole else len(runs[0].rows)},
        "metric": task.metric,
        "higher_is_better": METRICS[task.metric].higher_is_better,
        "known": {run.name: run.known for run in runs if run.known},
        "targets": {name: compare_target(runs, columns) for name, columns in columns_of(task).items()},
    }


def compare_settings(runs: Sequence[ScoredRun]) -> dict[str, dict]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: {run.name: run.settings.get(name) for run in runs} for name in names}
    different = {name: setting for name, setting in values.items() if len(set(map(str, setting.values()))) > 1}
    return {"same": {name: runs[0].settings[name] for name in names if name not in different}, "different": different}


def compare_target(runs: Sequence[ScoredRun], columns: slice) -> dict:
    task, all_y = runs[0].task, runs[0].predicted.y
    labelled, metric = ~np.isnan(all_y[:, columns]).all(axis=1), METRICS[task.metric]
    y, predictions = all_y[labelled, columns], [run.predicted.by_name[STACK][labelled, columns] for run in runs]
    if len(y) < LEAST_LABELS:
        return {"n": len(y), "runs": {}}
    values, drawn = [metric.or_nan(y, each) for each in predictions], resampled(task.metric, y, predictions)
    with_bounds, sign = compare_bounds(runs, columns), 1 if metric.higher_is_better else -1
    result = {}
    for place, run in enumerate(runs):
        own = {"value": or_none(values[place]), "interval": interval(drawn[:, place])}
        more = {"bounds": with_bounds[place] if with_bounds else None, "top": run.predicted.tops(columns)}
        own |= difference_to_first(values, drawn, place, sign)
        result[run.name] = own | {name: facts for name, facts in more.items() if facts}
    return {"n": len(y), "runs": result, "too_few": informative(facts_of_labels(task, columns, all_y)) < LEAST_TOLD}


def difference_to_first(values: Sequence[float], drawn: np.ndarray, place: int, sign: int) -> dict:
    """The difference of a score from that of the first run, and how often it is better in draws [draws, R]."""
    differences = drawn[:, place] - drawn[:, 0]
    defined, value = differences[~np.isnan(differences)], or_none(values[place] - values[0])
    better = float((sign * defined > 0).mean()) if len(defined) else None
    return {"difference": value, "difference_interval": interval(differences), "better": better}


def compare_bounds(runs: Sequence[ScoredRun], columns: slice) -> list[dict]:
    """The ``BoundScores`` of each run for a target, with the difference of their likelihoods; empty without bounds."""
    scores = [run.predicted.with_bounds(columns).get(STACK, {}) for run in runs]
    if not all(scores):
        return []
    likelihoods = np.stack([log_likelihoods(*run.predicted.column(columns)) for run in runs], axis=1)
    likelihoods = likelihoods[~np.isnan(likelihoods).any(axis=1)]
    drawn = np.stack([likelihoods[rows].mean(axis=0) for rows in draws_of(len(likelihoods))])
    values: list[Any] = [each["log_likelihood"] for each in scores]
    return [each | difference_to_first(values, drawn, place, 1) for place, each in enumerate(scores)]


def comparison_lines(compared: dict) -> list[str]:
    lines = [*setting_lines(compared), *(f"{name}: {words}" for name, words in compared["known"].items())]
    rows = "molecules" if compared["test_rows"]["shared"] is None else "measurements"
    for target, facts in compared["targets"].items():
        if not (runs := facts["runs"]):
            lines.append(f"{target}: too few test labels to compare ({facts['n']})")
            continue
        lines.append(f"{target}: {METRICS[compared['metric']].title} on {facts['n']} {rows}, 95 % intervals")
        lines += ["  these are too few to tell which is better"] * facts["too_few"]
        (first, *_), width = runs.values(), max(map(len, runs))
        scores = [each["value"] for each in runs.values() if each["value"] is not None]
        ends = [
            end for each in runs.values() for part in ("interval", "difference_interval") for end in each[part] or ()
        ]
        differences = [each["difference"] for each in runs.values()]
        decimals = decimals_for([*scores, *differences, *ends], next(iter(scores), None))
        for name, each in runs.items():
            value = with_range(each["value"], each["interval"], decimals)
            lines.append(f"  {name:{width}}  {value}{'' if each is first else difference_words(each, decimals)}")
        if bounds := {name: each["bounds"] for name, each in runs.items() if "bounds" in each}:
            (number, *_) = (each["bounds"] for each in bounds.values())
            lines.append(f"  with {number} bounds: mean log-likelihood, concordance and bounds on the right side")
        for place, (name, each) in enumerate(bounds.items()):
            numbers = f"{each['log_likelihood']:.3f}  {shown(each['concordance'], 3)}  {percent(each['right_side'])}"
            lines.append(f"  {name:{width}}  {numbers}{difference_words(each, 3) if place else ''}")
        tops = {name: "; ".join(top_words(each["top"])) for name, each in runs.items() if "top" in each}
        lines += [f"  {name:{width}}  {words}" for name, words in tops.items()]
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
        on = f"compared on the {shared:,} measurements that all of them tested, where replicates count singly"
        yield f"test rows: {counts}; {on}"


def value_words(value: object) -> str:
    if isinstance(value, dict):
        return ":".join(f"{100 * share:g}" for share in value.values())
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), str(value))


def with_range(value: float | None, ends: list[float] | None, decimals: int) -> str:
    return shown(value, decimals) + ("" if ends is None else f" ({shown_interval(ends, decimals)})")


def plot_comparison(compared: dict, picture: Path) -> None:
    targets = {name: facts["runs"] for name, facts in compared["targets"].items() if facts["runs"]}
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
