"""Resumable writer of tables: one output row per input row, in bounded memory."""

import contextlib
import functools
import hashlib
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from graphormer_sepnorm.config import STRICT, config_to_json
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import AS_FOUND, ReadOptions
from graphormer_sepnorm.predict.predictors import MoleculeModel, Results, compute_chunks, molecules_at_once
from graphormer_sepnorm.runs.checkpoint import content_of
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.files import (
    behind_link,
    check_output,
    locked,
    remove_leftovers,
    rename_durably,
    replacing,
)
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import Smiles, as_one, in_chunks
from graphormer_sepnorm.tables.formats import Row, Table, is_file, open_table, rows_of, table_of_smiles
from graphormer_sepnorm.tables.rows import samples_of, with_decimal
from graphormer_sepnorm.tables.writers import WRITERS, AddedColumn, Cells, MakeWriter, TableWriter, find_writer

STANDARD_OUTPUT = "-"
Count = Annotated[int, Field(ge=0, lt=2**63)]
Result = TypeVar("Result", bound=Results, contravariant=True)


class Additions(Protocol[Result]):
    """The columns that hold the results in a table."""

    @property
    def is_whole(self) -> bool: ...

    def columns(self) -> list[AddedColumn]:
        ...
    def cells(self, result: Result, errors: list[str]) -> list[Cells]:
        """The cells of each column; ``errors`` has a text for each row, "" where there is a result."""


@dataclass(config=STRICT)
class Progress:
    """The progress of a table, as stored in ``OUT.partial.json``; ``bytes`` of ``OUT.partial`` belong to it."""

    job: str  # digest of everything that the output depends on
    rows: Count = 0
    unreadable: Count = 0
    bytes: Count = 0
    complete: bool = False


class StandardOutput:
    """A streamed output, which cannot be resumed."""

    def __init__(self) -> None:
        self.progress = Progress(job="")

    def append(self, content: bytes, rows: int = 0, unreadable: int = 0) -> None:
        """Writes finished rows; raises OSError, for example for a closed pipe."""
        try:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the final flush does not fail too
            raise
        self.progress.bytes += len(content)
        self.progress.rows += rows
        self.progress.unreadable += unreadable

    def discard(self) -> None:
        """Does nothing: written output cannot be removed."""


def print_rows(writer: TableWriter, rows: list[Row], added: list[Cells]) -> None:
    """Writes a table to standard output at once; raises InputError if that fails."""
    try:
        StandardOutput().append(writer.header() + writer.encode(rows, added))
    except OSError as error:
        raise InputError(f"cannot write {STANDARD_OUTPUT}: {error.strerror}") from None


class PartialFile:
    """An output that grows in ``OUT.partial``; its record always describes a beginning that is on the disk."""

    def __init__(self, out: Path, job: str, resume: bool):
        self.out = out
        self.path = out.with_name(f"{out.name}.partial")
        self.record = record_of(out)
        if resume and self.record.exists():
            self.progress = self.read_progress(job)
        else:
            if self.record.exists():
                said = f"{self.path} of an interrupted run is replaced: --resume would have continued it"
                print(said, file=sys.stderr)
            self.progress = Progress(job)
            self.write_progress()

    def read_progress(self, job: str) -> Progress:
        try:
            progress = Progress(**json.loads(self.record.read_bytes()))
        except (ValueError, TypeError):
            raise InputError(f"{self.record} is damaged: start again without --resume") from None
        size = self.path.stat().st_size if self.path.exists() else 0
        is_named = progress.complete and not size and self.out.exists()
        if progress.job != job or (size < progress.bytes and not is_named):
            raise InputError(
                f"{self.path} was begun with another model, other input or other options: "
                "resume with the same ones, or start again without --resume"
            )
        return progress

    def write_progress(self) -> None:
        with replacing(self.record) as file:
            file.write(json.dumps(asdict(self.progress)).encode())

    @property
    def is_named(self) -> bool:
        """Whether the output has its final name and only the record remains to be removed."""
        return self.progress.complete and not self.path.exists()

    def append(self, content: bytes, rows: int = 0, unreadable: int = 0) -> None:
        """Appends finished rows and then updates the record; raises OSError."""
        self.path.touch()
        with open(self.path, "r+b") as file:
            file.seek(self.progress.bytes)
            file.truncate()
            file.write(content)
            self.progress.bytes = file.tell()
            file.flush()
            os.fsync(file.fileno())
        self.progress.rows += rows
        self.progress.unreadable += unreadable
        self.write_progress()

    def finish(self, complete: Callable[[Path], Path]) -> None:
        """Gives the output its final name; raises OSError."""
        if not self.is_named:
            self.progress.complete = True
            self.write_progress()
            rename_durably(complete(self.path), self.out)
        self.discard()

    def discard(self) -> None:
        """Removes the partial files; the record last, because it identifies the others."""
        self.path.unlink(missing_ok=True)
        remove_leftovers(self.record.parent, f"{self.record.name}.")
        self.record.unlink(missing_ok=True)


def write_table(
    reader: MoleculeModel[Result],
    added: Additions[Result],
    source: str | Sequence[str],
    out: Path,
    reading: ReadOptions = AS_FOUND,
    options: tuple[str, ...] = (),
    writers: Mapping[str, MakeWriter] = WRITERS,
    watch: Callable[[Smiles, Result], None] | None = None,
) -> dict:
    """Writes a reader's results for every row of a table, some SMILES, or standard input."""
    make_writer, resume = find_output_writer(out, writers), reading.resume
    if resume and is_standard_output(out):
        raise InputError("what goes to standard output cannot be resumed: name a file with -o")
    of_input = (reading.smiles_column, reading.delimiter)
    is_read_again = isinstance(source, str) and is_file(source)
    all_rows = functools.partial(rows_of, str(source), *of_input) if is_read_again else None
    if resume and all_rows is None:
        raise InputError(f"{source} can be read only once, so it cannot be resumed: save it in a file first")
    if isinstance(source, str):
        check_output(out, source)
    with opened(source, *of_input) as opened_table:
        table = with_decimal(opened_table)
        writer = make_writer(table.columns, added.columns())
        writer.keep_notation(table)
        names = [column.name for column in added.columns()]
        read = samples_of(table.columns, reader.asked_conditions, "the input", table.delimiter, all_rows)
        of_output = (out.suffix, current().precision, reader.featurizer, *names, *options)
        fill_with = functools.partial(fill, reader, read, added, writer, table, reading.strict, watch)
        try:
            if is_standard_output(out):
                errors = fill_with(output := StandardOutput())
                progress = output.progress
            else:
                file = behind_link(out)
                busy = f"another process is writing {out}: wait for it, or choose another output"
                with locked(file.with_name(f".{file.name}.lock"), busy):
                    finished = finished_progress(out, Path(str(source)), writer, table) if resume else None
                    progress, errors = finished or Progress(""), Counter()
                    if finished is None:
                        job = job_digest(reader, source, *of_input, *map(str, table.types), *of_output)
                        progress, errors = continued(out, job, resume, fill_with, writer.complete)
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror}") from None
    most = dict(errors.most_common(5))
    return {"rows": progress.rows, "unreadable": progress.unreadable, "output": str(out), "errors": most}


def continued(
    out: Path, job: str, resume: bool, fill_with: Callable[[PartialFile], Counter[str]], complete: Callable
) -> tuple[Progress, Counter[str]]:
    """Writes the rows of a job that are missing; returns its progress and why rows of this call are unreadable."""
    replaced = out.exists() and not resume
    partial = PartialFile(behind_link(out), job, resume)
    if resume and not partial.progress.bytes:
        print(f"{out} has no finished rows to continue: starting with the first row", file=sys.stderr)
    with advising(f"{partial.path} keeps the finished rows: continue with the same command and --resume"):
        errors = Counter() if partial.is_named else fill_with(partial)
        partial.finish(complete)
    if replaced:
        print(f"replaced {out}", file=sys.stderr)
    return partial.progress, errors


def record_of(out: Path) -> Path:
    """The record of the progress of an output."""
    return out.with_name(f"{out.name}.partial.json")


def finished_progress(out: Path, source: Path, writer: TableWriter, table: Table) -> Progress | None:
    """The progress of an output that is finished, and says so; None if there is none or an interrupted run."""
    if not out.exists() or record_of(behind_link(out)).exists():
        return None
    try:
        rows, unreadable = writer.count(out, table.columns[table.smiles_place])
    except InputError:
        rows = unreadable = -1
    if rows != sum(1 for _ in table.rows) or out.stat().st_mtime < source.stat().st_mtime:
        raise InputError(
            f"{out} is no interrupted run, and has other rows or columns than this command writes, or is older than "
            f"{source}: without --resume it is replaced"
        )
    print(f"{out} is finished, with {counted(rows, 'row')}; without --resume it is computed again", file=sys.stderr)
    return Progress("", rows, unreadable, complete=True)


def find_output_writer(out: Path, writers: Mapping[str, MakeWriter] = WRITERS) -> MakeWriter:
    """As ``find_writer``; standard output is CSV."""
    return find_writer(Path("out.csv") if is_standard_output(out) else out, writers)


def is_standard_output(out: Path) -> bool:
    return str(out) == STANDARD_OUTPUT


def opened(
    source: str | Sequence[str], smiles_column: str | None, delimiter: str | None
) -> contextlib.AbstractContextManager[Table]:
    """The table that ``source`` names, or that of some SMILES."""
    if isinstance(source, str):
        return open_table(source, smiles_column, delimiter)
    return contextlib.nullcontext(table_of_smiles(source))


def job_digest(reader: MoleculeModel, source: str | Sequence[str], *settings: str | None) -> str:
    """A digest of weights, configs, input and settings; a pipe is not read for it."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    if isinstance(source, str) and is_file(source):
        digest.update(sha256_of_file(Path(source)).encode())
    for model, config in reader.models:
        digest.update(config_to_json(config).encode())
        for part in content_of(model):
            digest.update(part)
    return digest.hexdigest()


def fill(
    reader: MoleculeModel[Result],
    read: Callable[[list[Row]], Smiles],
    added: Additions[Result],
    writer: TableWriter,
    table: Table,
    strict: bool,
    watch: Callable[[Smiles, Result], None] | None,
    output: PartialFile | StandardOutput,
) -> Counter[str]:
    """Appends all rows that are missing, and counts why rows are unreadable; discards all if the input is unusable."""
    errors: Counter[str] = Counter()
    progress = output.progress
    try:
        if progress.bytes == 0:
            output.append(writer.header())
        deque(islice(table.rows, progress.rows), maxlen=0)
        on_terminal = isinstance(output, StandardOutput) and sys.stdout.isatty()  # where a bar would mix with the rows
        with tqdm(initial=progress.rows, unit=" molecules", disable=on_terminal or None) as bar:
            chunks = compute_chunks(reader, in_chunks(table.rows, molecules_at_once(reader.device)), read)
            for rows, result in as_one(chunks) if added.is_whole else chunks:
                reasons = [row.error or error for row, error in zip(rows, result.errors, strict=True)]
                if strict:
                    refuse_errors(reasons, progress.rows)
                if progress.rows + len(rows) > writer.most_rows:
                    raise InputError(f"a sheet has at most {writer.most_rows:,} rows: write .csv or .parquet")
                if watch is not None:
                    watch(read(rows), result)
                content = writer.encode(rows, added.cells(result, reasons))
                output.append(content, len(rows), sum(map(bool, reasons)))
                errors.update(filter(None, reasons))
                bar.update(len(rows))
    except InputError:
        output.discard()
        raise
    return errors


def refuse_errors(reasons: list[str], rows_before: int) -> None:
    """Raises InputError with the first reason, if there is one."""
    for row, reason in enumerate(reasons, rows_before + 1):
        if reason:
            raise InputError(f"row {row} (counted from 1) cannot be read: {reason}")
