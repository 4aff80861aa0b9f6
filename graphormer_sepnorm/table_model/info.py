"""Facts about a table model: its members, training data and scores."""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from graphormer_sepnorm.predict.drugs import read_drugs
from graphormer_sepnorm.runs.arrays import stored_facts
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.info import describe_model, probability_words, salts_words, vocabulary_words
from graphormer_sepnorm.runs.zoo import card_endpoints, panel_parts
from graphormer_sepnorm.table_model.conditions import ConditionColumn
from graphormer_sepnorm.table_model.evaluate import OUT_OF_FOLD, kept_options
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.scores import STACK
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, read_labels
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import named_unit


def describe_any(path: Path) -> dict:
    run = RunFolder(path)
    if parts := panel_parts(path):
        return describe_panel(path, parts)
    return describe_table_model(run) if run.stack.exists() else describe_model(path)


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
        "featurizer": described[0]["featurizer"],
        "vocabulary": described[0]["vocabulary"],
        "salts": described[0]["salts"],
        "drugs": drugs and f"percentiles among {len(drugs.values):,} drugs: {drugs.source}",
    }


def describe_table_model(run: RunFolder) -> dict:
    model, table = TableModel.load(run.path), run.path / TABLE
    trust, of_classes = model.trust, TASKS[model.kind].predicts_probabilities
    with_table = table.exists() or table.with_suffix(".json").exists()  # shipped models have no table
    is_final = run.saved_test().get("split") == OUT_OF_FOLD
    networks, learnt = run.members() if "networks" in model.members else [], ("train", "val")
    shapes = [describe_model(network.path) for network in networks[:1]]
    return {
        "model": str(run),
        "architecture": f"table model: {', '.join(model.members)}",
        "weights": model.member_weights,
        "networks": [f"{len(networks)} of {shape['architecture']}" for shape in shapes] or None,
        "training": shapes[0]["training"] if shapes else unfinished_words(run),
        "parameters": sum(parameter.numel() for network, _ in model.models for parameter in network.parameters()),
        "task": model.kind,
        "targets": list(model.targets),
        "predicts": probability_words(model.task),
        **(settings_of(kept_options(run)) if with_table else {"training_data": None}),
        "conditions": [condition_words(column) for column in model.conditions.columns] or None,
        "molecules": sum(len(read_labels(table, model.task, split)[0]) for split in learnt) if with_table else None,
        "metric": model.task.metric,
        "test": None if is_final else run.saved_score(),
        "test_scores": None if is_final else targets_on_test(run.saved_test()) or None,
        "out_of_fold": run.saved_score() if is_final else None,
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


def condition_words(column: ConditionColumn) -> str:
    known = f"{column.low:g} to {column.high:g}" if column.low is not None and column.high is not None else "numbers"
    return f"{column.name} ({', '.join(column.choices) or known})"


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
    found = {}
    for target, known in result.get("targets", {}).items():
        value = known.get("scores", {}).get(STACK, {}).get(result["metric"])
        if value is not None:
            interval = known.get("interval", {}).get(STACK)
            found[target] = {"value": value, "interval": interval, "molecules": known["n"]}
    return found
