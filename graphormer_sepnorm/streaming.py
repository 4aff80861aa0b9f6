"""Predictions for whole tables into a file: row for row, in bounded memory, going on where a run stopped.

While it runs, the output grows in ``OUT.partial``, and ``OUT.partial.json`` says how far it has come.
"""

import csv
import hashlib
import io
import json
import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from graphormer_sepnorm.config import STRICT, config_to_json
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.files import check_output, rename_durably, write_atomically
from graphormer_sepnorm.parallel import CHUNK
from graphormer_sepnorm.prediction import Predictions, Predictor, compute_chunks
from graphormer_sepnorm.signals import advising
from graphormer_sepnorm.store import sha256_of_file
from graphormer_sepnorm.tables import Row, Table, is_file, open_table, smiles_of_rows, with_free_names

SUFFIXES = (".csv", ".tsv")
ENCODING = {"encoding": "utf-8", "errors": "surrogateescape"}
Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(config=STRICT)
class Progress:
    """How far a table has come: what ``OUT.partial.json`` holds.

    Attributes:
        job: digest of everything that the output depends on.
        rows, unreadable: done so far.
        bytes: length of ``OUT.partial`` that belongs to them.
    """

    job: str
    rows: Count = 0
    unreadable: Count = 0
    bytes: Count = 0


class PartialFile:
    """The output while it grows.

    Args:
        out: the file to be.
        job: digest of everything that its content depends on.
        resume: go on with the parts that are there.

    Raises:
        InputError: ``resume`` and the parts are missing or of another job.
    """

    def __init__(self, out: Path, job: str, resume: bool):
        self.out = out
        self.path = out.with_name(f"{out.name}.partial")
        self.record = out.with_name(f"{out.name}.partial.json")
        self.progress = self.read_progress(job) if resume else Progress(job)
        if not resume:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(b"")

    def read_progress(self, job: str) -> Progress:
        try:
            progress = Progress(**json.loads(self.record.read_bytes()))
        except FileNotFoundError:
            raise InputError(f"there is nothing to resume: {self.record} does not exist") from None
        except (ValueError, TypeError):
            raise InputError(f"{self.record} is damaged: start again without --resume") from None
        if progress.job != job or not self.path.exists() or self.path.stat().st_size < progress.bytes:
            raise InputError(
                f"{self.path} was begun with another model, other input or other options: "
                "resume with the same ones, or start again without --resume"
            )
        return progress

    def append(self, text: str, rows: int = 0, unreadable: int = 0) -> None:
        """Adds finished rows and then says so in the record."""
        with open(self.path, "r+b") as file:
            file.seek(self.progress.bytes)
            file.truncate()
            file.write(text.encode(**ENCODING))
            self.progress.bytes = file.tell()
            file.flush()
            os.fsync(file.fileno())
        self.progress.rows += rows
        self.progress.unreadable += unreadable
        write_atomically(self.record, json.dumps(asdict(self.progress)).encode())

    def finish(self) -> None:
        """Gives the output its name."""
        rename_durably(self.path, self.out)
        self.record.unlink()

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.record.unlink(missing_ok=True)


def predict_table(
    predictor: Predictor,
    source: str,
    out: Path,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    resume: bool = False,
) -> dict:
    """Writes a table with all columns of the input, one per target and ``error``; with a spread if there are models.

    Args:
        predictor: the models.
        source, smiles_column, delimiter: as ``open_table``.
        out: CSV to write, named ``.csv``, or ``.tsv`` for tabs.
        strict: stop at the first row that cannot be read.
        resume: go on with what an interrupted call left.

    Returns:
        ``rows, unreadable, output`` and ``errors``, the most frequent reasons with their counts in this call.

    Raises:
        InputError: an unusable table, an unreadable row if ``strict``, an output that cannot be written, or nothing
            that fits to resume. Nothing is left half-written.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise InputError(f"predictions are written as {' or '.join(SUFFIXES)}, not as {out.suffix or out.name!r}")
    check_output(out, source)
    if resume and not is_file(source):
        raise InputError(f"{source} can be read only once, so it cannot be resumed: save it in a file first")
    with open_table(source, smiles_column, delimiter) as table:
        job = job_digest(predictor, source, smiles_column, delimiter, out.suffix)
        try:
            partial = PartialFile(out, job, resume)
            with advising(f"{partial.path} keeps what is done: go on with the same command and --resume"):
                return fill(partial, predictor, table, strict)
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror}") from None


def job_digest(predictor: Predictor, source: str, *settings: str | None) -> str:
    """A digest of weights, configs, input and settings; a pipe is not read for it."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    if is_file(source):
        digest.update(sha256_of_file(Path(source)).encode())
    for model, config in predictor.models:
        digest.update(config_to_json(config).encode())
        for name, tensor in model.state_dict().items():
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


def fill(partial: PartialFile, predictor: Predictor, table: Table, strict: bool) -> dict:
    """Writes all rows that are missing and gives the file its name; removes it if the input turns out unusable."""
    delimiter = "\t" if partial.out.suffix.lower() == ".tsv" else ","
    errors: Counter[str] = Counter()
    try:
        if partial.progress.rows == 0:
            partial.append(as_csv([output_columns(table.columns, predictor)], delimiter))
        deque(islice(table.rows, partial.progress.rows), maxlen=0)
        with tqdm(initial=partial.progress.rows, unit=" molecules", disable=None) as bar:
            for rows, predictions in compute_chunks(predictor, table.chunks(CHUNK), smiles_of_rows):
                reasons = [row.error or error for row, error in zip(rows, predictions.errors, strict=True)]
                if strict:
                    refuse_errors(reasons, partial.progress.rows)
                lines = output_rows(rows, predictions, reasons, with_spread=len(predictor.models) > 1)
                unreadable = sum(map(bool, reasons))
                partial.append(as_csv(lines, delimiter), len(rows), unreadable)
                errors.update(filter(None, reasons))
                bar.update(len(rows))
    except InputError:
        partial.discard()
        raise
    partial.finish()
    progress = partial.progress
    return {
        "rows": progress.rows,
        "unreadable": progress.unreadable,
        "output": str(partial.out),
        "errors": dict(errors.most_common(5)),
    }


def refuse_errors(reasons: list[str], rows_before: int) -> None:
    """Raises InputError with the first reason, if there is one."""
    for row, reason in enumerate(reasons, rows_before + 1):
        if reason:
            raise InputError(f"row {row} (counted from 1) cannot be read: {reason}")


def output_columns(columns: list[str], predictor: Predictor) -> list[str]:
    """The input's columns, the predictions' and "error"; a name that the input has already is made another."""
    added = list(predictor.targets)
    if len(predictor.models) > 1:
        added += [f"{target}_std" for target in predictor.targets]
    return [*columns, *with_free_names([*added, "error"], columns)]


def output_rows(
    rows: list[Row], predictions: Predictions, reasons: list[str], with_spread: bool
) -> Iterator[list[str]]:
    """One line of fields per row; empty predictions where there is an error."""
    values = np.hstack([predictions.values, predictions.spread]) if with_spread else predictions.values
    for row, numbers, reason in zip(rows, values.tolist(), reasons, strict=True):
        yield [*row.fields, *("" if reason else f"{number:.7g}" for number in numbers), reason]


def as_csv(rows: Iterator[list[str]] | list[list[str]], delimiter: str) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()
