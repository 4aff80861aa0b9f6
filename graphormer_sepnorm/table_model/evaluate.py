"""How well a table model and each of its members do on rows that they did not learn from.

Axis letters: K members, M test molecules, T targets.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from graphormer_sepnorm.chem.features import Sample, read_molecules
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import calibrated, computed
from graphormer_sepnorm.runs.folder import RunFolder, member_paths
from graphormer_sepnorm.system.device import Compute, computing, current
from graphormer_sepnorm.system.workers import in_chunks, map_chunks
from graphormer_sepnorm.table_model.earlier import EarlierModel, load_earlier
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.table_model.reliability import measure_trust
from graphormer_sepnorm.table_model.scores import STACK, Predicted, scores_by_target
from graphormer_sepnorm.tables.labels import TableOptions, read_usable
from graphormer_sepnorm.tables.prepared_table import TABLE, read_labels, read_rows, samples_of_split
from graphormer_sepnorm.tables.splits import Sizes
from graphormer_sepnorm.tasks import TASKS, make_task
from graphormer_sepnorm.training.experiment import Scores, score_runs


@dataclass(frozen=True)
class ScoredRows:
    """Molecules with their labels, to score a table model on.

    Attributes:
        smiles: M.
        y: float [M, T], NaN where a label is missing or not known exactly.
        bounds: float [M, T, 2], infinite where nothing bounds a label; None: nothing does.
        source: where they come from: "dataset" and "split" of the result.
        table: of the run folder in which they are; None: of another one.
        samples: M molecules with their conditions; empty where there are no conditions.
    """

    smiles: list[str]
    y: np.ndarray
    bounds: np.ndarray | None
    source: dict[str, str]
    table: Path | None = None
    samples: Sequence[Sample] = ()


@dataclass(frozen=True)
class StackScores(Scores):
    """Scores of a table model; in place of what networks predict it has what members do.

    Attributes:
        expected: [M, T], the spread of the predictions.
    """

    expected: np.ndarray | None = None

    @property
    def spread(self) -> np.ndarray:
        assert self.expected is not None
        return self.expected


def evaluate_table(run: RunFolder, split: str = "test") -> dict:
    """Scores the table model of a run folder on its test rows.

    Returns:
        ``dataset, split, metric, value, scores, n, parameters``: the mean over targets; ``members``, the scores of each
        of them, and their ``weights``; ``targets``, as ``scores_by_target``; ``baseline``, the forest's scores;
        ``left_out`` has the targets that have no score, with the reason, and ``censored`` how many labels of each
        target bound it and do not count. The last three are there if there are such.

    Raises:
        InputError: another split, which the model learnt from, or a folder that cannot be read.
    """
    if split != "test":
        raise InputError(f"the table model in {run} learnt from all rows but those for test: score it on test")
    model = TableModel.load(run.path)
    return score_rows(model, rows_for_test(run, model), means_of(run, model)).final.result


def evaluate_new(
    run: RunFolder, table: str, smiles_column: str | None = None, delimiter: str | None = None
) -> dict[str, object]:
    """Scores the table model of a run folder on another table, which has its target columns.

    Args:
        run: the folder.
        table: as ``open_table``; its labels are read as those of the table that was learnt from.
        smiles_column, delimiter: of it.

    Returns:
        as ``evaluate_table``; ``trust``, how far intervals or probabilities hold; and ``skipped``, how many rows could
        not be used.

    Raises:
        InputError: the folder or the table cannot be read, or no row can be scored.
    """
    model = TableModel.load(run.path)
    assert model.trust is not None
    options = replace(kept_options(run), path=table, smiles_column=smiles_column, delimiter=delimiter, test_csv=None)
    read = read_usable(replace(options, split="random", split_column=None, sizes=Sizes(), folds=0), model.featurizer)
    if not read.rows:
        raise InputError(f"{table}: no row can be scored; the first, because: {read.skipped[0][2]}")
    source = {"dataset": table, "split": "all"}
    samples = [Sample(row.smiles, row.conditions) for row in read.rows] if model.conditions.columns else ()
    rows = ScoredRows([row.smiles for row in read.rows], *label_arrays(read.rows), source, samples=samples)
    found = score_rows(model, rows, means_of(run, model))
    trust = measure_trust(model.trust, found.plain, found.final)
    return {**found.final.result, "trust": trust, "skipped": len(read.skipped)}


def evaluate_earlier(run: RunFolder, split: str) -> dict:
    """Scores a run folder with a table on one of its splits; returns as ``evaluate_run``."""
    scores, model = score_runs(member_paths(run.path), split), load_earlier(run.path)
    if not isinstance(model, EarlierModel):
        return scores.result
    smiles, _ = read_rows(RunFolder(member_paths(run.path)[0]).path / TABLE, scores.task, split)
    return scores.of(model.finished(scores.by_network.mean(axis=0), smiles)).result


def kept_options(run: RunFolder) -> TableOptions:
    """How the table in a run folder was read; raises InputError if that cannot be told."""
    path = (run.path / TABLE).with_suffix(".json")
    try:
        return TypeAdapter(TableOptions).validate_json(json.dumps(json.loads(path.read_bytes())["options"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, ValidationError):
        raise InputError(f"{path} is missing or damaged: without it nobody knows how its table was read") from None


def rows_for_test(run: RunFolder, model: TableModel) -> ScoredRows:
    """The test rows of a run folder."""
    smiles, y, bounds = read_labels(run.path / TABLE, model.task, "test")
    samples = samples_of_split(run.path / TABLE, "test") if model.conditions.columns else ()
    return ScoredRows(smiles, y, bounds, {"dataset": TABLE, "split": "test"}, run.path / TABLE, samples)


def means_of(run: RunFolder, model: TableModel) -> np.ndarray:
    """The mean labels [T] of the rows that a model learnt from."""
    y = [read_labels(run.path / TABLE, model.task, split)[1] for split in ("train", "val")]
    return np.asarray(np.nanmean(np.concatenate(y), axis=0, dtype=np.float64))


@dataclass(frozen=True)
class Scored:
    """The scores of a table model before and after the calibration of its probabilities."""

    plain: StackScores
    final: StackScores


def score_rows(model: TableModel, rows: ScoredRows, means: np.ndarray) -> Scored:
    """Scores a model and its members.

    Args:
        model: with its networks on the device of ``device.current``.
        rows: that it did not learn from.
        means: as ``means_of``.

    Raises:
        InputError: no target of these rows can be scored.
    """
    task, y = model.task, rows.y
    make_task(task).check_scorable(y, "test")
    found = predict_all(model, rows.samples or rows.smiles)
    members = dict(zip(model.members, found.by_member, strict=True))
    predicted = Predicted(task, y, {STACK: calibrated(found.values, model.trust), **members}, means)
    known, filled = predicted.of(slice(None))
    result: dict = {
        **rows.source,
        "metric": task.metric,
        "n": len(y),
        "parameters": sum(p.numel() for network, _ in model.models for p in network.parameters()),
        "members": {name: TASKS[task.kind].scores(known, filled[name]) for name in members},
        "weights": {
            name: dict(zip(task.targets, row.round(4).tolist(), strict=True))
            for name, row in zip(model.members, model.weights, strict=True)
        },
        "targets": scores_by_target(predicted),
        **said_of_labels(rows, task),
    }
    if "forest" in members:
        result["baseline"] = {"random_forest": result["members"]["forest"]}
    empty = StackScores(result, task, y, found.values, found.by_member, rows.table, found.spread)
    return Scored(empty.of(found.values), empty.of(predicted.by_name[STACK]))


def said_of_labels(rows: ScoredRows, task: TaskConfig) -> dict:
    """The targets without a score, and the labels that bound a number, where there are such."""
    found: dict = {}
    if missing := make_task(task).left_out(rows.y):
        found["left_out"] = missing
    if rows.bounds is not None and np.isfinite(rows.bounds).any():
        censored = np.isfinite(rows.bounds).any(axis=2).sum(axis=0).tolist()
        found["censored"] = dict(zip(task.targets, censored, strict=True))
    return found


def predict_all(model: TableModel, smiles: Sequence[Sample | str]) -> Stacked:
    """What a model and its members predict for readable molecules, of many in several processes."""
    parts = [part for _, part in map_chunks(partial(predict_chunk, model, current()), in_chunks(smiles), list)]
    return Stacked(
        np.concatenate([part.by_member for part in parts], axis=1),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.spread for part in parts]),
    )


def predict_chunk(model: TableModel, compute: Compute, smiles: Sequence[Sample | str]) -> Stacked:
    with computing(compute):
        read = model.ready(read_molecules(model.featurizer, smiles))
        return model.stacked(model.features(read, computed(read, model.outputs)))
