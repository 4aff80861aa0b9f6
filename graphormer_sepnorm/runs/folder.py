"""The run folder: the names of all its files, and access to those that hold no tensors."""

import contextlib
import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from graphormer_sepnorm.config import Config, config_to_json, read_config
from graphormer_sepnorm.encodings.base import STRICT
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.files import locked, remove_leftovers, write_atomically
from graphormer_sepnorm.tables.prepared_table import TABLE
from graphormer_sepnorm.tables.writers.base import as_csv

WEIGHTS = "model.safetensors"
STATE = "state.safetensors"
CONFIG = "config.json"
METRICS_FILE = "metrics.jsonl"
FOREST = "forest.safetensors"
STACK = "stack.safetensors"
PARTS = ("kernel.safetensors", "tuned_kernel.safetensors", FOREST, "body.safetensors", "trust.safetensors")  # beside it
REPORT = "report.html"
IN_PYTHON = "given in Python"  # in the place of the path of the table, in the options of a model saved from Python


@pydantic_dataclass(frozen=True, config=STRICT)
class Parts:
    """The run folders inside a folder: networks of a table model, or folds, each in its own folder."""

    kind: Literal["model", "fold"]
    count: Annotated[int, Field(ge=1)]

    def __str__(self) -> str:
        name, option = ("folds", "--folds") if self.kind == "fold" else ("networks", "--ensemble")
        return f"{self.count} {name}: continue with {option} {self.count}"


READ_PARTS = TypeAdapter(Parts)


class RunFolder:
    """The files of a run, or of a table model, whose folder holds the run folders ``model-0``, ``model-1``, ..."""

    def __init__(self, path: Path, shown: str = ""):
        self.path = path
        self.shown = shown or str(path)  # in messages
        self.weights = path / WEIGHTS  # the best checkpoint
        self.state = path / STATE  # the state to resume training from
        self.config = path / CONFIG  # a readable copy of the config
        self.metrics = path / METRICS_FILE  # a line of JSON per epoch
        self.curves = path / "curves.png"  # plot of the metrics
        self.test = path / "test.json"  # the test scores
        self.predictions = path / "predictions.csv"  # the test predictions, a line per molecule
        self.out_of_fold = path / "out_of_fold.csv"  # predictions of the molecules that a table model was fitted to
        self.stack = path / STACK  # how the members of a table model are combined, and their files; written last
        self.report = path / REPORT  # report of a run on a table, as one page
        self.command = path / "command.json"  # the options that train was given, which --resume takes up
        self.record = path / "parts.json"  # the run folders inside the folder, written before the first is trained

    @classmethod
    def around(cls, path: Path) -> "RunFolder":
        """The run folder at ``path``, or the one that contains the weights file ``path``."""
        return cls(path if path.is_dir() else path.parent)

    def __str__(self) -> str:
        return self.shown

    @property
    def holds_run(self) -> bool:
        return self.config.exists()

    @property
    def is_from_python(self) -> bool:
        facts = (self.path / TABLE).with_suffix(".json")
        try:
            return json.loads(facts.read_bytes())["options"]["path"] == IN_PYTHON
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def member(self, number: int) -> "RunFolder":
        return RunFolder(self.path / f"model-{number}")

    def fold(self, number: int) -> "RunFolder":
        return RunFolder(self.path / f"fold-{number}")

    def parts(self) -> Parts | None:
        """The run folders in this one, from its record; None if there are none."""
        if not self.record.exists():
            return None
        try:
            return READ_PARTS.validate_json(self.record.read_bytes())
        except ValidationError:
            raise InputError(f"{self.record} is damaged: the models of {self} cannot be found without it") from None

    def members(self) -> list["RunFolder"]:
        """The run folders of the networks of a table model, in order; empty for a single run."""
        parts = self.parts()
        return [self.member(number) for number in range(parts.count)] if parts and parts.kind == "model" else []

    def begin_parts(self, parts: Parts) -> None:
        """Writes the record; requires ``locked``; raises InputError as ``check_parts``."""
        self.check_parts(parts)
        write_atomically(self.record, READ_PARTS.dump_json(parts) + b"\n")

    def check_parts(self, parts: Parts) -> None:
        """Raises InputError if the folder holds anything other than these run folders."""
        if self.holds_run:
            raise InputError(f"{self} holds one network, which is no part of a table model: choose another --out")
        if (held := self.parts()) not in (None, parts):
            raise InputError(f"{self} holds {held}, or choose another --out")

    def dataset(self, config: Config) -> str:
        """The name of a run's dataset for ``load_split``: its name, or the path of the table in the run folder."""
        return str(self.path / TABLE) if config.dataset == TABLE else config.dataset

    def check_free(self, resume: bool) -> None:
        """Raises InputError if no model may be trained here."""
        if self.stack.exists():
            raise InputError(f"{self} holds a table model: choose another --out")
        if (held := self.parts()) is not None:
            raise InputError(f"{self} holds {held}, or choose another --out")
        if self.holds_run and not resume:
            advice = "continue it with --resume (in Python resume=True), or choose another --out"
            raise InputError(f"{self} already holds a run: {advice}")
        if self.holds_run and not self.state.exists():
            try:
                read_config(self.config)
            except InputError as error:
                raise InputError(f"{self.config} is not the config of a run, choose another --out ({error})") from None

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Context manager: no other process trains in the folder; raises InputError as ``files.locked``."""
        busy = f"another process is training in {self}: wait for it, or choose another --out"
        return locked(self.path / "run.lock", busy)

    def begin(self, config: Config) -> None:
        """Writes the config and removes temporary files of killed writers; no other process may be writing here."""
        write_atomically(self.config, config_to_json(config).encode())
        remove_leftovers(self.path)

    def append_metrics(self, lines: list[dict[str, float]]) -> None:
        """Appends lines to the metrics, replacing lines of the same or later epochs from an interrupted run."""
        kept = [line for line in self.read_metrics() if line["epoch"] < lines[0]["epoch"]]
        write_atomically(self.metrics, "".join(f"{json.dumps(line)}\n" for line in [*kept, *lines]).encode())

    def read_metrics(self) -> list[dict[str, float]]:
        """The lines of the metrics, empty if there are none; raises InputError if they cannot be read."""
        if not self.metrics.exists():
            return []
        try:
            lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
            return [{**line, "epoch": int(line["epoch"])} for line in lines]
        except (ValueError, KeyError, TypeError, RecursionError):
            advice = "remove it to continue the run without its earlier epochs"
            raise InputError(f"{self.metrics} is damaged: {advice}") from None

    def write_test(self, result: dict) -> None:
        write_atomically(self.test, (json.dumps(result) + "\n").encode())

    def write_predictions(self, lines: list[list]) -> None:
        write_atomically(self.predictions, as_csv(lines))

    def saved_test(self) -> dict:
        """The test scores as they were written, empty if there are none; raises InputError if they cannot be read."""
        if not self.test.is_file():
            return {}
        try:
            result = json.loads(self.test.read_bytes())
            return {**result, "value": float(result["value"])}
        except (ValueError, KeyError, TypeError, RecursionError):
            advice = "remove it, and score the run again with train --resume"
            raise InputError(f"{self.test} is damaged: {advice}") from None


def weights_file(path: Path) -> Path:
    """The weights in a run folder, or the file itself; raises InputError for a folder that is not one network."""
    if not path.is_dir():
        return path
    run = RunFolder(path)
    if not run.stack.exists() and (parts := [name for name in PARTS if (path / name).exists()]):
        advice = "copy the whole folder again, or continue its training with --resume"
        raise InputError(f"{path} has a part of a table model, {parts[0]}, but no {STACK}: {advice}")
    if run.weights.exists():
        return run.weights
    folds = [run.fold(0)] if run.fold(0).path.is_dir() else []
    for kind, held in (("folds", folds), ("networks", run.members()), ("runs", runs_in(path))):
        if held:
            final = "; train with --final for a model of all rows" if kind == "folds" else ""
            raise InputError(f"{path} is not one model: it holds {kind}, name one of them, such as {held[0]}{final}")
    if run.stack.exists():
        raise InputError(f"{path} has no networks, which this needs; predict and evaluate work without")
    if (path / TABLE).exists():
        raise InputError(f"{path} has no model yet: continue the training with train --out {path} --resume")
    raise InputError(f"{path} is not a folder that train wrote: it has no {WEIGHTS}")


def runs_in(folder: Path) -> list[Path]:
    """The run folders with a model in a folder, sorted; none if the folder cannot be read."""
    try:
        folders = [RunFolder(each) for each in sorted(folder.iterdir())]
        return [run.path for run in folders if run.stack.exists() or run.weights.exists()]
    except OSError:
        return []
