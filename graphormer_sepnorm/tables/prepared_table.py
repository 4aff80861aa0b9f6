"""The prepared table in a run folder: ``table.csv`` and its companion files."""

import contextlib
import functools
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter

from graphormer_sepnorm.chem.features import FEATURIZERS, Sample, read_graphs
from graphormer_sepnorm.config import Config, TaskConfig, config_to_json
from graphormer_sepnorm.dataset import Dataset
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.text import is_file
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions
from graphormer_sepnorm.tables.writers.base import as_csv, as_utf8

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLE, SKIPPED, DUPLICATES, MEASUREMENTS = "table.csv", "skipped.csv", "duplicates.csv", "measurements.csv"
NAME, WEIGHT, TIME = "name", "weight", "time"  # columns
TARGET, CONDITION = "target ", "condition "  # in front of names
KEPT_IN = "averaged in row"  # of table.csv


def write_labelled(folder: Path, labelled: LabelledTable, config: Config, options: TableOptions) -> None:
    """Writes ``table.csv`` and its companions into a run folder, or nothing if that holds another table or task."""
    content = as_csv(table_lines(labelled, labelled.rows, options))
    kept = replace(options, units=labelled.units if any(labelled.units) else ())
    facts = {"task": asdict(config.task), "featurizer": config.featurizer, "options": asdict(kept)}
    facts["config"] = json.loads(config_to_json(config))
    table = folder / TABLE
    if table.exists() and table.read_bytes() != content:
        raise InputError(f"{folder} was begun with another table or another split: use a new --out")
    if kept_facts(table.with_suffix(".json")) not in (None, (config.task, config.featurizer)):
        raise InputError(f"{folder} was begun for another task or with other features: use a new --out")
    write_atomically(table, content)
    write_atomically(table.with_suffix(".json"), (json.dumps(facts, indent=2) + "\n").encode())
    left_out = [*labelled.skipped]
    for row in labelled.usable:
        left_out += [(row.number, row.smiles, f"{gap}; the row has other labels") for gap in row.gaps.values()]
    skipped = [[*named(labelled, each[0]), *each[1:], labelled.in_file(each[0])] for each in sorted(left_out)]
    write_atomically(folder / SKIPPED, as_csv([[*named(labelled), "smiles", "error", "in_file"], *skipped]))
    lines = table_lines(labelled, labelled.usable, options)
    times = [TIME, *(row.time for row in labelled.usable)]
    write_atomically(folder / MEASUREMENTS, as_csv([*line, time] for line, time in zip(lines, times, strict=True)))
    write_atomically(folder / DUPLICATES, as_csv(duplicate_lines(labelled, options.names)))


def label_texts(row: LabelledRow) -> list[str]:
    exact = ["" if math.isnan(label) else repr(label) for label in row.labels]
    return [row.bounds.get(place, text) for place, text in enumerate(exact)]


def table_lines(labelled: LabelledTable, rows: list[LabelledRow], options: TableOptions) -> list[list]:
    weighted, targets = options.weight_column is not None, [TARGET + name for name in options.names]
    conditions = [CONDITION + name for name in options.feature_columns]
    lines: list[list] = [[*named(labelled), "smiles", "split", *[WEIGHT] * weighted, *targets, *conditions]]
    for row in rows:
        own, weight = [*named(labelled, row.number), as_utf8(row.smiles), row.split], [repr(row.weight)] * weighted
        lines.append([*own, *weight, *label_texts(row), *row.conditions])
    return lines


def named(labelled: LabelledTable, number: int | None = None) -> list:
    """The number of a row and its name, if rows have names; the header of these columns by default."""
    name = NAME if number is None else as_utf8(labelled.names.get(number, ""))
    return ["row" if number is None else number, *[name] * bool(labelled.names)]


def duplicate_lines(labelled: LabelledTable, targets: tuple[str, ...]) -> list[list]:
    of_targets = [TARGET + name for name in targets]
    lines: list[list] = [["molecule", *named(labelled), "smiles", "split", "conflicting targets", *of_targets, KEPT_IN]]
    for duplicate in labelled.duplicates:
        conflicts = "; ".join(targets[target] for target in duplicate.conflicts)
        first: dict[tuple, int] = {}
        for row in (labelled.usable[place] for place in duplicate.rows):
            kept = first.setdefault((row.split, row.conditions), row.number) if labelled.measured else row.number
            own = [duplicate.key, *named(labelled, row.number), row.smiles, row.split]
            lines.append([*own, conflicts, *label_texts(row), kept])
    return lines


def kept_options(folder: Path) -> TableOptions:
    """The options with which a run folder's table was read; raises InputError if they are missing or damaged."""
    path = (folder / TABLE).with_suffix(".json")
    try:
        return TypeAdapter(TableOptions).validate_json(json.dumps(json.loads(path.read_bytes())["options"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path} is missing or damaged: it holds the options with which the table was read") from None


def learnt_column(models: Iterable[Path], table: str, *reading: str | None) -> str | None:
    """The SMILES column that was named to train the first of the models, of those that a file has; None without any."""
    for folder in models if is_file(table) else ():
        with contextlib.suppress(InputError):
            if name := kept_options(folder).smiles_column:
                with open_table(table, name, *reading):
                    return name
    return None


def read_measurements(folder: Path, options: TableOptions) -> tuple[list[LabelledRow], dict[int, str]]:
    import pandas as pd  # its import takes a while

    path, rows = folder / MEASUREMENTS, []
    try:
        lines = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
        for line in lines:
            texts = [line[TARGET + name] for name in options.names]
            bounds = {place: text for place, text in enumerate(texts) if text[:1] in ("<", ">")}
            labels = [math.nan if place in bounds or not text else float(text) for place, text in enumerate(texts)]
            conditions = tuple(line[CONDITION + name] for name in options.feature_columns)
            molecule = int(line["row"]), line["smiles"], labels, line["split"], line[TIME]
            rows.append(LabelledRow(*molecule, bounds, float(line.get(WEIGHT, "1")), conditions))
    except (OSError, ValueError, KeyError, AttributeError):
        raise InputError(f"{path} is missing or damaged: without the rows of its table, train {folder} again") from None
    return rows, {row.number: line[NAME] for row, line in zip(rows, lines, strict=True) if NAME in line}


def table_dataset(path: Path) -> Dataset:
    """The prepared table of a run, which comes with a JSON file that holds the task."""
    if (kept := kept_facts(facts := path.with_suffix(".json"))) is None:
        raise InputError(f"{facts} is missing or damaged: it is required to read the table of this run")
    task, featurizer = kept

    def read(split: str, root: Path) -> Graphs:
        smiles, y, bounds = read_labels(path, task, split)
        return read_graphs(featurizer, smiles).with_targets(y, bounds if np.isfinite(bounds).any() else None)

    return Dataset(task, featurizer, read, lambda root: hashlib.sha256(path.read_bytes()).hexdigest())


def kept_facts(path: Path) -> tuple[TaskConfig, str] | None:
    """The task and the featurizer from the JSON file of a prepared table; None if it is missing or damaged."""
    try:
        saved = json.loads(path.read_bytes())
        task = TypeAdapter(TaskConfig).validate_json(json.dumps(saved["task"]))
        return (task, saved["featurizer"]) if saved["featurizer"] in FEATURIZERS else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_labels(path: Path, task: TaskConfig, split: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """SMILES, exact labels float64 [M, tasks], else NaN, and bounds float64 [M, tasks, 2] of a prepared split."""
    with undamaged(path):
        part = lines_of_split(path, split)
        y, bounds = zip(*(column_of_labels(part[TARGET + name]) for name in task.targets), strict=True)
        return part.smiles.tolist(), np.stack(y, axis=1), np.stack(bounds, axis=1)


def lines_of_split(path: Path, split: str) -> "DataFrame":
    state = path.stat()
    lines = all_lines(path, state.st_size, state.st_mtime_ns)
    return lines[lines.split == split]


@functools.lru_cache(maxsize=1)
def all_lines(path: Path, size: int, changed: int) -> "DataFrame":
    """The lines of a prepared table, parsed once for all of its splits while the file has that size and date."""
    import pandas as pd  # its import takes a while

    return pd.read_csv(path, dtype=str, keep_default_na=False)


def rows_of_split(path: Path, split: str, targets: tuple[str, ...]) -> tuple[list[list], list[str]]:
    """The row, SMILES, split and labels as they are written of each line of a split, and the names of rows, if any."""
    with undamaged(path):
        part = lines_of_split(path, split)
        numbers = map(int, part.get("row", part.index + 1))
        columns = [numbers, part.smiles, part.split, *(part[TARGET + name] for name in targets)]
        return list(map(list, zip(*columns, strict=True))), part[NAME].tolist() if NAME in part else []


def samples_of_split(path: Path, split: str) -> list[Sample]:
    with undamaged(path):
        part = lines_of_split(path, split)
        conditions = part.filter(regex=f"^{CONDITION}").to_numpy().tolist()
        return [Sample(smiles, tuple(texts)) for smiles, texts in zip(part.smiles, conditions, strict=True)]


def damaged(path: Path) -> str:
    return f"{path} is damaged: it is not the table that this run was trained on"


@contextlib.contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Within it, what reading a damaged table raises is an InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, AttributeError):
        raise InputError(damaged(path)) from None


def column_of_labels(column: "Series") -> tuple[np.ndarray, np.ndarray]:
    """The labels float64 [M] of a column of texts, NaN where there is no exact one, and their bounds float64 [M, 2]."""
    censored = column.str.startswith(("<", ">"), na=False)
    exact = column.mask(censored | (column == "")).astype(float).to_numpy(np.float64)
    bounds = [bounds_of(text if bounded else "") for text, bounded in zip(column, censored, strict=True)]
    return exact, np.array(bounds).reshape(-1, 2)
