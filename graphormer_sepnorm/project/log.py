"""A log of predictions, which measurements that arrive later are compared with."""

import contextlib
import csv
import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.output.column import kind_of_target
from graphormer_sepnorm.predict.predictors import PredictingModel, Predictions, interval_ends
from graphormer_sepnorm.predict.side_by_side import SideBySide
from graphormer_sepnorm.runs.zoo import SHARED
from graphormer_sepnorm.system.files import writing
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.tables.splits import MoleculeStructure, read_structures
from graphormer_sepnorm.tables.writers.base import DIGITS, as_csv

NUMBERED = re.compile(r"(.*)-update-(\d+)", re.DOTALL)  # the name of the run folder of an update
CONFIDENCE = 0.9  # of the intervals in logs
OF_PREDICTION = ("target", "predicted", "low", "high")
COLUMNS = ("date", "model", "smiles", "conditions", *OF_PREDICTION, "digest")


def predictions_of(model: PredictingModel, predictions: Predictions) -> list[list[dict[str, str]]]:
    """For each molecule, unless it cannot be predicted, each target, prediction, and 90 % interval, or ""."""
    try:
        low, high = interval_ends(model, CONFIDENCE, predictions.values, predictions.spread)
    except InputError:  # no intervals, or too few molecules to calibrate them
        low = high = np.full(predictions.values.shape, np.nan)
    digits = [DIGITS[kind_of_target(model, number)] for number in range(len(model.targets))]
    found = []
    for error, row in zip(predictions.errors, np.stack([predictions.values, low, high], axis=2), strict=True):
        parts = zip(model.targets, digits, row, strict=True)
        texts = [(target, *(number_text(value, count) for value in values)) for target, count, values in parts]
        found.append([] if error else [dict(zip(OF_PREDICTION, each, strict=True)) for each in texts])
    return found


def number_text(value: float, digits: int = DIGITS["number"]) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}g}"


def conditions_text(names: Sequence[str], texts: Sequence[str]) -> str:
    """Conditions as one cell: JSON by name; "" without conditions."""
    return json.dumps(dict(zip(names, texts, strict=True)), sort_keys=True) if names else ""


def log_into(
    path: Path, model: PredictingModel, name: str, digests: Mapping[str, str] | None = None
) -> Callable[[Smiles, Predictions], None]:
    """A function that appends predictions of a model to a log, a CSV with ``COLUMNS`` that may not be there yet.

    ``digests`` are those of the models by name; a log of an earlier release has no column for them.
    """
    read_log(path)
    columns, digests = (read_records(path)[0] if path.exists() else ()) or COLUMNS, digests or {}

    def append(asked_for: Smiles, predictions: Predictions) -> None:
        now, lines = datetime.now(UTC).isoformat(timespec="seconds"), list[tuple[str | None, ...]]()
        told = [(name, ", ".join(digests.values()), model, asked_for, predictions)]
        if isinstance(model, SideBySide):
            asked = [[each and model.sample_for(n, each) for each in asked_for] for n in range(len(model.parts))]
            of_parts = zip(model.parts, asked, predictions.parts, strict=True)
            told = [(part.name, digests.get(part.name, ""), part.model, its, own) for part, its, own in of_parts]
        for own_name, digest, one, samples, own in told:
            fixed, names = one.asked_conditions.given, one.asked_conditions.columns
            for sample, found in zip(samples, predictions_of(one, own), strict=True):
                smiles, texts = (sample.smiles, sample.conditions) if isinstance(sample, Sample) else (sample, ())
                conditions = conditions_text([*names, *fixed], [*texts, *fixed.values()])
                lines += [(now, own_name, smiles, conditions, *each.values(), digest) for each in found]
        with writing(path), open(path, "ab") as file:
            lines = [line[: len(columns)] for line in lines]
            file.write(as_csv(lines if file.tell() else [COLUMNS, *lines]))

    return append


def ancestor(name: str) -> str:
    """The name of a model without its folder, its ending and the number of its update, as equal for all updates."""
    path = Path(name)
    own = path.name.removesuffix(SHARED)
    return match[1] if (match := NUMBERED.fullmatch(own)) else own


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a log, none without a file or that are incomplete; raises InputError if it is no log."""
    names, lines = read_records(path) if path.exists() else (COLUMNS, [])
    if names not in ((), COLUMNS, COLUMNS[:-1]):
        raise InputError(f"{path} is no log of predictions: name a new file or one that predict --log began")
    return [line for line in lines if is_whole_line(line) and is_date(line["date"])]


def read_records(path: Path) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    try:
        with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
            reader = csv.DictReader(file)
            return tuple(reader.fieldnames or ()), list(reader)
    except (OSError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def is_whole_line(line: dict[str, str]) -> bool:
    return None not in line and None not in line.values()


def is_date(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(datetime.fromisoformat(text))
    return False


def earliest(
    path: Path, featurizer: str, models: Container[str], digests: Container[str] = ()
) -> dict[tuple[str, str, str], dict[str, str]]:
    """The earliest line of a log on models of this ancestry, by ``molecule_key``, conditions and target.

    The models are told by their ``digests``, and by their names in lines of earlier releases, which have no digest.
    """

    def is_ours(line: dict[str, str]) -> bool:
        return line["digest"] in digests if line.get("digest") else ancestor(line["model"]) in models

    lines = sorted(filter(is_ours, read_log(path)), key=lambda line: datetime.fromisoformat(line["date"]))
    texts = list(dict.fromkeys(line["smiles"] for line in lines))
    found = zip(texts, read_structures(featurizer, texts), strict=True)
    keys = {text: structure.key for text, structure in found if isinstance(structure, MoleculeStructure)}
    known = (line for line in reversed(lines) if line["smiles"] in keys)  # so that the earliest one is kept
    return {(keys[line["smiles"]], line["conditions"], line["target"]): line for line in known}
