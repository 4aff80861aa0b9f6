"""Test predictions of runs, and the rows that several of them have tested. Axis letters: M test rows, T targets."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphormer_sepnorm.chem.properties import family_of, molecule_key, parent_key
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig, read_config
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import DUPLICATES, KEPT_IN, TABLE, TARGET, kept_facts
from graphormer_sepnorm.tables.structures import known_words

SIGNS = ("<", ">")
SEED = "--seed"
NOT_COMPARED = "their scores cannot be compared"
OTHER_ROWS = "train them on the same table with the same --split and --seed, or the same --split-column"


@dataclass(frozen=True)
class ScoredRun:
    name: str
    dataset: str
    task: TaskConfig
    molecules: list[tuple[int, str]]  # number and SMILES of each row, in ascending order
    y: np.ndarray  # float64 [M, T] labels, NaN where there is no exact label
    bounds: np.ndarray  # float64 [M, T, 2], smallest and largest possible value of each censored label
    prediction: np.ndarray  # float64 [M, T]
    known: str = ""  # the sentence of ``known_words``
    settings: dict[str, Any] = field(default_factory=dict)  # by the names of options
    measured: dict[int, list[tuple[int, str, list[str]]]] = field(default_factory=dict)  # source rows of means

    def take(self, numbers: Sequence[int]) -> "ScoredRun":
        place_of = {number: place for place, (number, _) in enumerate(self.molecules)}
        places = [place_of[number] for number in numbers]
        molecules = [self.molecules[place] for place in places]
        y, bounds, prediction = (part[places] for part in (self.y, self.bounds, self.prediction))
        return replace(self, molecules=molecules, y=y, bounds=bounds, prediction=prediction)

    def by_measurement(self) -> "ScoredRun":
        """The rows of the source table: each has its own label, and the prediction of the row it was averaged in."""
        rows = sorted(
            (number, smiles, place, texts)
            for place, (kept, kept_smiles) in enumerate(self.molecules)
            for number, smiles, texts in self.measured.get(kept, [(kept, kept_smiles, [])])
        )
        places = [place for _, _, place, _ in rows]
        y, bounds = self.y[places], self.bounds[places]
        for row, (*_, texts) in enumerate(rows):
            if texts:
                y[[row]], bounds[[row]] = labels_of([texts], len(texts))
        molecules = [(number, smiles) for number, smiles, _, _ in rows]
        return replace(self, molecules=molecules, y=y, bounds=bounds, prediction=self.prediction[places])


def read_scored_run(path: Path) -> ScoredRun:
    run = RunFolder(path)
    if run.is_from_python:
        raise InputError(f"{path} was saved from Python and has no test molecules: compare runs of train FILE")
    if run.fold(0).path.is_dir():
        raise InputError(f"{path} holds folds: name one of them, such as {run.fold(0)}")
    if not (run.test.exists() and run.predictions.exists()):
        raise InputError(f"{path} has no test predictions: name a finished run folder, as train writes it")
    task = task_of(run)
    try:
        result = json.loads(run.test.read_bytes())
        lines = sorted(lines_of(run.predictions), key=lambda line: int(line["row"]))
        y, bounds = labels_of([[line[name] for name in task.targets] for line in lines], len(task.targets))
        return ScoredRun(
            str(path),
            str(result["dataset"]),
            task,
            [(int(line["row"]), line["smiles"]) for line in lines],
            y,
            bounds,
            np.array([[float(line[f"{name}_predicted"]) for name in task.targets] for line in lines]),
            known_words(result),
            dict(settings_of(run, result)),
            measured_rows(path / DUPLICATES, task.targets),
        )
    except (ValueError, KeyError, TypeError):
        advice = "remove it, and score the run again with train --resume"
        raise InputError(f"{run.predictions} or {run.test} is damaged: {advice}") from None


def lines_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def task_of(run: RunFolder) -> TaskConfig:
    known = kept_facts((run.path / TABLE).with_suffix(".json"))
    return known[0] if known else read_config(run.config).task


def settings_of(run: RunFolder, result: dict) -> Iterator[tuple[str, Any]]:
    facts = (run.path / TABLE).with_suffix(".json")
    options = json.loads(facts.read_bytes()).get("options", {}) if facts.exists() else {}
    yield "table", options.get("path")
    for each in declared(TableOptions):
        if each.field in options:
            yield each.name, options[each.field]
    yield SEED, options.get("seed", result.get("seed"))
    yield "members", list(result.get("members", {}))
    if run.config.exists():
        config = asdict(read_config(run.config))
        yield from ((f"{part}.{name}", value) for part in ("model", "train") for name, value in config[part].items())


def measured_rows(path: Path, targets: Sequence[str]) -> dict[int, list[tuple[int, str, list[str]]]]:
    """As ``ScoredRun.measured``, from ``duplicates.csv``; empty without that file, or in one of an earlier version."""
    found: dict[int, list[tuple[int, str, list[str]]]] = {}
    for line in lines_of(path) if path.exists() else ():
        if KEPT_IN in line:
            texts = [line[TARGET + name] for name in targets]
            found.setdefault(int(line[KEPT_IN]), []).append((int(line["row"]), line["smiles"], texts))
    return {number: rows for number, rows in found.items() if len(rows) > 1}


def labels_of(texts: Sequence[Sequence[str]], num_targets: int) -> tuple[np.ndarray, np.ndarray]:
    y = [[float(text) if text and text[0] not in SIGNS else np.nan for text in row] for row in texts]
    bounds = [[bounds_of(text if text[:1] in SIGNS else "") for text in row] for row in texts]
    return np.reshape(y, (-1, num_targets)), np.array(bounds, np.float64).reshape(-1, num_targets, 2)


def check_same_task(runs: Sequence[ScoredRun]) -> None:
    first, facts = runs[0], {}
    for run in runs:
        task = run.task
        facts[run.name] = {"targets": task.targets, "tasks": task.kind, "metrics": task.metric, "datasets": run.dataset}
        for what, ours in facts[first.name].items():
            if ours != facts[run.name][what]:
                raise InputError(f"{first.name} and {run.name} have different {what}, so {NOT_COMPARED}")


def on_shared_rows(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], bool]:
    """Runs on the test rows that all have in common, and whether these are all rows of all of them."""
    first = runs[0]
    if all(same_rows(first, other) and same_labels(first, other) for other in runs[1:]):
        return list(runs), True
    apart = [run.by_measurement() for run in runs]
    shared = set.intersection(*({number for number, _ in run.molecules} for run in apart))
    taken = [run.take(sorted(shared)) for run in apart]
    for other in taken[1:]:
        if not shared or not same_rows(taken[0], other):
            raise InputError(f"{first.name} and {other.name} have different test rows: {OTHER_ROWS}")
        if not same_labels(taken[0], other):
            raise InputError(f"{first.name} and {other.name} have different test labels, so {NOT_COMPARED}")
    return taken, False


def same_labels(first: ScoredRun, other: ScoredRun) -> bool:
    return np.array_equal(first.y, other.y, equal_nan=True) and np.array_equal(first.bounds, other.bounds)


def same_rows(first: ScoredRun, other: ScoredRun) -> bool:
    """Whether two runs were tested on the same rows, whose molecules may have been standardized differently."""
    if len(first.molecules) != len(other.molecules):
        return False
    shift = other.molecules[0][0] - first.molecules[0][0] if first.molecules else 0
    pairs = zip(first.molecules, other.molecules, strict=True)
    return all(
        number + shift == other_number and (smiles == other_smiles or family(smiles) == family(other_smiles))
        for (number, smiles), (other_number, other_smiles) in pairs
    )


def family(smiles: str) -> str:
    """The ``family_of`` a molecule: standardization may remove salts, charges, stereo and isotopes."""
    mol = read_smiles(smiles)
    return family_of(parent_key(mol, molecule_key(mol)))
