"""Scores of a table model and each of its members on held-out rows, and facts about it.

Axis letters: K members, M test molecules, T targets."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.features import Sample, read_molecules
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import computed
from graphormer_sepnorm.predict.training_rows import read_drugs
from graphormer_sepnorm.runs.arrays import stored_facts
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.info import describe_model, probability_words, salts_words, shown_facts, vocabulary_words
from graphormer_sepnorm.runs.zoo import card_endpoints, card_facts, model_digest, panel_parts, resolve_model
from graphormer_sepnorm.system.device import Compute, computing, current
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.workers import CHUNK, in_chunks, map_chunks
from graphormer_sepnorm.table_model.features import with_known
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.model import TableModel, check_table
from graphormer_sepnorm.table_model.reliability import measure_trust
from graphormer_sepnorm.table_model.scores import OUT_OF_FOLD, STACK, Predicted, scores_of
from graphormer_sepnorm.table_model.stacking import Stacked, each_by_itself
from graphormer_sepnorm.tables.label_text import CLASSES, same_label
from graphormer_sepnorm.tables.labels import read_usable
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, kept_options, learnt_column, read_labels, samples_of_split
from graphormer_sepnorm.tables.splits import Sizes, Structures, known_molecules, structures_of
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.tasks.scales import named_unit
from graphormer_sepnorm.training.experiment import Scores
from graphormer_sepnorm.version import __version__

FAR = 2.0  # shift of all labels, in typical deviations from it, from which they may be in another unit
FACTOR = 5.0  # between the spread of labels and of predictions, from which they may be
LEAST_LABELS = 5  # that tell it
NORMAL = 1.4826  # standard deviation of normal errors, in their median
REASONS = 5  # skipped rows whose reasons are given


@dataclass(frozen=True)
class ScoredRows:
    smiles: list[str]  # M SMILES
    y: np.ndarray  # float [M, T], NaN where a label is missing or not known exactly
    bounds: np.ndarray | None  # float [M, T, 2], infinite where a label is unbounded; None: there are no bounds
    source: dict[str, str]  # origin of the rows: "dataset" and "split" of the result
    table: Path | None = None  # the run folder's table if the rows are part of it; None: another table
    samples: Sequence[Sample] = ()  # M molecules with their conditions; empty if there are no conditions


@dataclass(frozen=True, kw_only=True)
class StackScores(Scores):  # ``by_network`` are the predictions of its members
    plain: np.ndarray  # [M, T], predictions before calibration
    expected: np.ndarray  # [M, T], expected standard deviation of the predictions

    @property
    def spread(self) -> np.ndarray:
        return self.expected


def evaluate_table(run: RunFolder, split: str = "test") -> dict:
    """Scores the table model of a run folder on its test rows; the result is that of ``test.json``."""
    if run.is_from_python:
        raise InputError(f"{run} was saved from Python and has no test molecules: give a table with --csv")
    if run.saved_test().get("split") == OUT_OF_FOLD:
        raise InputError(f"{run} was fitted to all rows (--final) and has no test molecules: give a table with --csv")
    if split != "test":
        raise InputError(f"the table model in {run} was fitted to all rows outside the test set: score it on test")
    model = TableModel.load(run.path)
    check_table(run.path)
    rows = rows_for_test(run, model)
    overlap = known_molecules(structures_of(model.featurizer, rows.smiles), learnt_structures(run, model))
    return score_rows(model, rows, means_of(run, model)).result | overlap


def evaluate_new(
    run: RunFolder, table: str, smiles_column: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> dict[str, object]:
    model = TableModel.load(run.path)
    assert model.trust is not None
    check_table(run.path)
    column = smiles_column or learnt_column([run.path], table, delimiter, sheet)
    options = replace(kept_options(run.path), path=table, smiles_column=column, delimiter=delimiter, sheet=sheet)
    without_split: dict = {"split": "random", "split_column": None, "sizes": Sizes(), "folds": 0, "test_csv": None}
    options = replace(options, weight_column=None, id_column=None, **without_split)
    refuse_other_classes(model.task)
    try:
        read = read_usable(options, model.featurizer)
    except InputError as error:
        unnamed = [name for number, name in enumerate(options.targets) if name == f"y{number}"]
        if run.is_from_python and any(f"has no column {name!r}" in str(error) for name in unnamed):
            called = f"The model's target is called {unnamed[0]}, as y had no name in fit: rename the column"
            raise InputError(f"{error}. {called}") from None
        raise
    read = with_known(read, model.conditions)
    if not read.rows:
        raise InputError(f"{table}: no row can be scored; the reason for the first one: {read.skipped[0][2]}")
    samples = [Sample(row.smiles, row.conditions) for row in read.rows] if model.conditions.columns else ()
    smiles, source = [row.smiles for row in read.rows], {"dataset": table, "split": "all"}
    rows = ScoredRows(smiles, *label_arrays(read.rows), source, samples=samples)
    scored = score_rows(model, rows, means_of(run, model))
    return {
        **scored.result,
        **({"other_scale": strange} if (strange := other_scale(model.task, scored)) else {}),
        "trust": measure_trust(model.trust, scored, scored.plain),
        "skipped": len(read.skipped),
        **known_molecules(read.structures, learnt_structures(run, model)),
        "reasons": {row: reason for row, _, reason in read.skipped[:REASONS]},
    }


def other_scale(task: TaskConfig, scores: Scores) -> dict[str, str]:
    """How the labels of targets differ from predictions, if it is as another unit would, by a factor or a shift."""
    if TASKS[task.kind].predicts_probabilities:
        return {}
    ratios = {}
    for name, y, prediction in zip(task.targets, np.asarray(scores.y).T, scores.prediction.T, strict=True):
        labelled = ~np.isnan(y)
        if labelled.sum() < LEAST_LABELS:
            continue
        (low, high), (lower, higher) = (np.quantile(each[labelled], (0.1, 0.9)) for each in (y, prediction))
        factor, errors = (high - low) / max(higher - lower, np.finfo(float).tiny), (y - prediction)[labelled]
        shift = float(np.median(errors))
        rest = float(np.median(np.abs(errors - shift)))
        if factor > FACTOR or 0 < factor < 1 / FACTOR:
            ratios[name] = f"labels spread {factor:.3g} times as widely as predictions"
        elif abs(shift) > FAR * NORMAL * rest:
            ratios[name] = f"labels minus predictions are about {shift:.3g}, give or take {NORMAL * rest:.2g}"
    return ratios


def refuse_other_classes(task: TaskConfig) -> None:
    """Raises InputError for two classes that a table calls otherwise, as an estimator may have learnt them."""
    for target, names in zip(task.targets, task.class_names if task.kind == "classification" else (), strict=False):
        if [CLASSES.get(same_label(name)) for name in names] != [0, 1]:
            how = "score the model with GraphormerClassifier.score in Python"
            raise InputError(f"the classes of {target} are {' and '.join(names)}, which tables have as 0 and 1: {how}")


def learnt_structures(run: RunFolder, model: TableModel) -> Structures:
    smiles = [text for split in ("train", "val") for text in read_labels(run.path / TABLE, model.task, split)[0]]
    return structures_of(model.featurizer, smiles)


def rows_for_test(run: RunFolder, model: TableModel) -> ScoredRows:
    smiles, y, bounds = read_labels(run.path / TABLE, model.task, "test")
    samples = samples_of_split(run.path / TABLE, "test") if model.conditions.columns else ()
    return ScoredRows(smiles, y, bounds, {"dataset": TABLE, "split": "test"}, run.path / TABLE, samples)


def means_of(run: RunFolder, model: TableModel) -> np.ndarray:
    y = [read_labels(run.path / TABLE, model.task, split)[1] for split in ("train", "val")]
    return np.asarray(np.nanmean(np.concatenate(y), axis=0, dtype=np.float64))


def score_rows(model: TableModel, rows: ScoredRows, means: np.ndarray) -> StackScores:
    """Scores a model and its members; ``means`` [T] as ``means_of``."""
    make_task(model.task).check_scorable(rows.y, "test")  # before a long prediction
    return score_predictions(model, rows, means, predict_all(model, rows.samples or rows.smiles))


def score_predictions(model: TableModel, rows: ScoredRows, means: np.ndarray, stacked: Stacked) -> StackScores:
    task, y = model.task, rows.y
    make_task(task).check_scorable(y, "test")
    members = dict(zip(model.members, each_by_itself(task, stacked.by_member), strict=True))
    final = model.final(stacked.values)
    predicted = Predicted(task, y, {STACK: final, **members}, means, rows.bounds)
    judged = predicted.judged
    exact, filled = replace(predicted, y=judged).of(slice(None))
    weights = [dict(zip(task.targets, row.round(4).tolist(), strict=True)) for row in model.weights]
    result: dict = {
        **rows.source,
        "metric": task.metric,
        "value": METRICS[task.metric](judged, final),
        "scores": TASKS[task.kind].scores(judged, final),
        "n": len(y),
        "parameters": model.num_parameters,
        "members": {name: scores_of(task, exact, filled[name]) for name in members},
        "weights": dict(zip(model.members, weights, strict=True)),
        "targets": predicted.by_target(),
    }
    if predicted.left_out:
        result["left_out"] = predicted.left_out
    if rows.bounds is not None and (censored := np.isfinite(rows.bounds).any(axis=2).sum(axis=0)).any():
        result["censored"] = dict(zip(task.targets, censored.tolist(), strict=True))
    if "forest" in members:
        result["baseline"] = {"random_forest": result["members"]["forest"]}
    known_of = result, task, y, final, stacked.by_member, rows.table, rows.bounds
    return StackScores(*known_of, plain=stacked.values, expected=stacked.spread)


def predict_all(model: TableModel, smiles: Sequence[Sample | str]) -> Stacked:
    chunks = map_chunks(partial(predict_chunk, model, current()), in_chunks(smiles), list)
    parts = [vars(part).values() for _, part in tracked(chunks, -(-len(smiles) // CHUNK), 0.5)]
    return Stacked(*(np.concatenate(each, axis=-2) for each in zip(*parts, strict=True)))


def predict_chunk(model: TableModel, compute: Compute, smiles: Sequence[Sample | str]) -> Stacked:
    with computing(compute):
        read = model.ready(read_molecules(model.featurizer, smiles))
        return model.stacked(model.features(read, computed(read, model.outputs)))


def describe_any(path: Path) -> dict:
    run = RunFolder(path)
    if parts := panel_parts(path):
        described = describe_panel(path, parts)
    else:
        described = describe_table_model(run) if run.stack.exists() else describe_model(path)
    return described | {"digest": model_digest(path)} | card_facts(path)


def about_models(models: Sequence[str]) -> list[tuple[str, str]]:
    """Facts about the origin of predictions, for a workbook."""
    facts = [{"model": model, **shown_facts(describe_any(resolve_model(model)))} for model in models]
    origin = {"predicted by": f"graphormer_sepnorm {__version__}", "on": f"{date.today()}"}
    return [line for each in (origin, *facts) for line in each.items()]


def describe_panel(path: Path, parts: Sequence[Path]) -> dict:
    described = [describe_table_model(RunFolder(part)) for part in parts]
    shapes = [f"{part.name} ({each['architecture']})" for part, each in zip(parts, described, strict=True)]
    drugs = read_drugs(path, [target for each in described for target in each["targets"]])
    return {
        "model": str(path),
        "architecture": f"panel: {', '.join(shapes)}",
        "parameters": sum(each["parameters"] for each in described),
        "task": ", ".join(dict.fromkeys(each["task"] for each in described)),
        "targets": list(card_endpoints(path)),
        **{name: described[0][name] for name in ("featurizer", "vocabulary", "salts")},
        "drugs": drugs and f"percentiles among {len(drugs.values):,} drugs: {drugs.source}",
    }


def describe_table_model(run: RunFolder) -> dict:
    model, table = TableModel.load(run.path), run.path / TABLE
    trust, of_classes = model.trust, TASKS[model.kind].predicts_probabilities
    with_table = table.exists() or table.with_suffix(".json").exists()  # shipped models have no table
    saved = run.saved_test()
    tested = {} if saved.get("split") == OUT_OF_FOLD else saved
    networks = run.members() if "networks" in model.members else []
    counts = [len(read_labels(table, model.task, split)[0]) for split in SPLITS] if with_table else [0] * len(SPLITS)
    shapes = [describe_model(network.path) for network in networks[:1]]
    return {
        "model": str(run),
        "architecture": f"table model: {', '.join(model.members)}",
        "weights": model.member_weights,
        "networks": [f"{len(networks)} of {shape['architecture']}" for shape in shapes] or None,
        "training": shapes[0]["training"] if shapes else unfinished_words(run),
        "parameters": model.num_parameters,
        "task": model.kind,
        "targets": list(model.targets),
        "predicts": probability_words(model.task),
        **(settings_of(kept_options(run.path)) if with_table else {"training_data": None}),
        "conditions": [f"{column.name} ({column.allowed})" for column in model.conditions.columns] or None,
        "molecules": sum(counts[:-1]) if with_table else None,  # that were learnt
        "test_molecules": counts[-1] or None,
        "metric": model.task.metric,
        "test": tested.get("value"),
        "test_scores": targets_on_test(tested) or None,
        "left_out_of_test": list(saved.get("left_out", {})) or None,
        "out_of_fold": saved.get("out_of_fold", {}).get(STACK, {}).get(model.task.metric),
        "intervals": None if of_classes else trust is not None and trust.intervals is not None,
        "sets_of_classes": trust is not None and trust.class_sets is not None if of_classes else None,
        "featurizer": model.featurizer,
        "vocabulary": vocabulary_words(model.featurizer),
        "salts": salts_words(model.featurizer),
        "licence": "that of its training data",
    }


def settings_of(options: TableOptions) -> dict:
    units = {name: unit for name, unit in zip(options.targets, options.units, strict=False) if unit}
    units |= {name: unit for name in options.targets if (unit := named_unit(name))}
    scales = {name: scale for name, scale in zip(options.targets, options.scales, strict=False) if scale}
    how = f"column {options.split_column}" if options.split == "column" else f"{options.split}, seed {options.seed}"
    shares = ":".join(f"{100 * share:g}" for share in astuple(options.sizes))
    sizes = "" if options.split == "column" or options.final or options.test_csv else f", {shares}"
    return {
        "training_data": options.path,
        "units": [f"{name} in {unit}" for name, unit in units.items()] or None,
        "transforms": [f"{scale} of {name}" for name, scale in scales.items()] or None,
        "split": f"all rows are fitted; folds: {how}" if options.final else f"{how}{sizes}",
        "test_table": options.test_csv,
    }


def unfinished_words(run: RunFolder) -> str | None:
    """A sentence on a table model whose other members are still to be fitted; None for any other run folder."""
    if not run.stack.exists() or "networks" in (stored_facts(run.stack).get("members") or ()) or run.is_from_python:
        return None
    is_begun = run.record.exists() and "networks" not in run.saved_test().get("left_out_members", {})
    if not is_begun and (run.test.exists() or not (run.path / TABLE).exists()):
        return None
    advice = "if it was interrupted, repeat its command with --resume"
    return f"the training in {run} is not finished, so only the kernel predicts: {advice}"


def targets_on_test(result: dict) -> dict[str, dict]:
    """By target with a score on the test molecules, its ``value``, 95 % ``interval`` and number of ``molecules``."""
    return {
        target: {"value": value, "interval": facts.get("interval", {}).get(STACK), "molecules": facts["n"]}
        for target, facts in result.get("targets", {}).items()
        if (value := facts.get("scores", {}).get(STACK, {}).get(result["metric"])) is not None
    }
