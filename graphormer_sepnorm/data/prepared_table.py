"""The prepared table that a run on a table of one's own keeps: ``table.csv`` and what belongs to it."""

import csv
import functools
import hashlib
import io
import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from graphormer_sepnorm.chem.features import FEATURIZERS, read_molecules
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.data.dataset import Dataset
from graphormer_sepnorm.data.labels import LabelledTable, TableOptions
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.system.files import write_atomically

SKIPPED = "skipped.csv"
DUPLICATES = "duplicates.csv"
TABLE = "table.csv"
TARGET = "target "


def write_labelled(folder: Path, labelled: LabelledTable, config: Config, options: TableOptions) -> None:
    """Writes ``table.csv``, ``table.json``, ``skipped.csv`` and ``duplicates.csv`` into a run folder.

    Raises:
        InputError: the folder has another table already.
    """
    header = ["smiles", "split", *(TARGET + name for name in options.targets)]
    lines = ([r.smiles, r.split, *("" if math.isnan(v) else repr(v) for v in r.labels)] for r in labelled.rows)
    content = csv_bytes([header, *lines])
    facts = {"task": asdict(config.task), "featurizer": config.featurizer, "options": asdict(options)}
    if (folder / TABLE).exists() and (folder / TABLE).read_bytes() != content:
        raise InputError(f"{folder} was begun with another table or another split: use a new --out")
    write_atomically(folder / TABLE, content)
    write_atomically((folder / TABLE).with_suffix(".json"), (json.dumps(facts, indent=2) + "\n").encode())
    write_atomically(folder / SKIPPED, csv_bytes([["row", "smiles", "error"], *labelled.skipped]))
    write_atomically(folder / DUPLICATES, csv_bytes(duplicate_lines(labelled, options.targets)))


def duplicate_lines(labelled: LabelledTable, targets: tuple[str, ...]) -> list[list]:
    """A header, and a line per row whose molecule stands in several."""
    lines: list[list] = [["molecule", "row", "smiles", "split", "conflicting targets"]]
    for duplicate in labelled.duplicates:
        conflicts = "; ".join(targets[target] for target in duplicate.conflicts)
        rows = [labelled.rows[place] for place in duplicate.rows]
        lines += [[duplicate.key, row.number, row.smiles, row.split, conflicts] for row in rows]
    return lines


def csv_bytes(lines: list) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode(errors="surrogateescape")


def table_dataset(path: Path) -> Dataset:
    """The prepared table of a run: ``smiles``, ``split``, ``target NAME`` ..., beside a JSON file with the task."""
    facts = path.with_suffix(".json")
    try:
        known = json.loads(facts.read_bytes())
        task = TypeAdapter(TaskConfig).validate_json(json.dumps(known["task"]))
        featurizer = known["featurizer"]
        if featurizer not in FEATURIZERS:
            raise ValueError(featurizer)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{facts} is missing or damaged: without it the table of this run cannot be read") from None
    read = functools.partial(read_table, path, task, featurizer)
    return Dataset(task, featurizer, read, functools.partial(table_source, path))


def read_table(path: Path, task: TaskConfig, featurizer: str, split: str, root: Path) -> Graphs:
    smiles, y = read_rows(path, task, split)
    return read_molecules(featurizer, smiles, strict=True).graphs.with_targets(y)


def read_rows(path: Path, task: TaskConfig, split: str) -> tuple[list[str], np.ndarray]:
    """The SMILES of a split of a prepared table and their labels float32 [M, tasks], NaN where missing.

    Raises:
        InputError: the table is not there or damaged.
    """
    import pandas as pd  # its import takes a while

    try:
        table = pd.read_csv(path)
        part = table[table.split == split]
        return part.smiles.tolist(), part[[TARGET + name for name in task.targets]].to_numpy(np.float32)
    except (OSError, ValueError, KeyError, AttributeError):
        raise InputError(f"{path} is damaged: it is not the table that this run was trained on") from None


def table_source(path: Path, root: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
