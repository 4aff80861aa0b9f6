"""Resumable writer of tables: one output row per input row, in bounded memory."""

import contextlib
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from graphormer_sepnorm.chem.smiles import ignored_name
from graphormer_sepnorm.config import STRICT, config_to_json
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.predict.predictors import MoleculeModel, Results, compute_chunks, molecules_at_once
from graphormer_sepnorm.runs.checkpoint import digest_parts
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.system import files
from graphormer_sepnorm.system.device import current
from graphormer_sepnorm.system.files import behind_link, cache_root, check_output
from graphormer_sepnorm.system.progress import say
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import Smiles, as_one, in_chunks
from graphormer_sepnorm.tables.formats import open_table, rows_of
from graphormer_sepnorm.tables.formats.table import Row, Table, table_of_smiles
from graphormer_sepnorm.tables.formats.text import is_file
from graphormer_sepnorm.tables.rows import samples_of, with_decimal
from graphormer_sepnorm.tables.writers import WRITERS, MakeWriter, find_writer
from graphormer_sepnorm.tables.writers.base import AddedColumn, Cells, TableWriter
from graphormer_sepnorm.version import __version__

STANDARD_OUTPUT = "-"
MOST_NAMED = 5  # rows that cannot be read
DETAILS = re.compile(r"(['\"]).*?\1|\d[\d,]*")  # of a reason: texts and numbers of its row
Count = Annotated[int, Field(ge=0, lt=2**63)]
Result = TypeVar("Result", bound=Results)


@dataclass(config=STRICT)
class Progress:
    """The progress of a table, as stored in ``OUT.partial.json``; ``bytes`` of ``OUT.partial`` belong to it."""

    job: str = ""  # digest of everything that the output depends on
    rows: Count = 0
    unreadable: Count = 0
    bytes: Count = 0
    complete: bool = False
    counts: dict[str, dict[str, Count]] = field(default_factory=dict)  # of remarks, as in the result

    def add(self, size: int, rows: int, unreadable: int) -> None:
        self.bytes += size
        self.rows += rows
        self.unreadable += unreadable


READ_PROGRESS = TypeAdapter(Progress)


class StandardOutput:
    def __init__(self) -> None:
        self.progress = Progress()

    def append(self, content: bytes, rows: int = 0, unreadable: int = 0) -> None:
        """Writes finished rows; raises OSError, for example for a closed pipe."""
        try:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the final flush does not fail too
            raise
        self.progress.add(len(content), rows, unreadable)


def print_bytes(content: bytes) -> None:
    """Writes a table to standard output at once; raises InputError if that fails."""
    try:
        StandardOutput().append(content)
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
                say([f"{self.path} of an interrupted run is replaced: --resume would have continued it"])
            self.progress = Progress(job)
            self.write_progress()

    def read_progress(self, job: str) -> Progress:
        try:
            progress = READ_PROGRESS.validate_json(self.record.read_bytes())
        except ValueError:
            raise InputError(f"{self.record} is damaged: start again without --resume") from None
        size = self.path.stat().st_size if self.path.exists() else 0
        is_named = progress.complete and not size and self.out.exists()
        if progress.job != job or (size < progress.bytes and not is_named):
            others = "another model, other input or other options: resume with the same ones"
            raise InputError(f"{self.path} was begun with {others}, or start again without --resume")
        return progress

    def write_progress(self) -> None:
        with files.replacing(self.record) as file:
            file.write(json.dumps(vars(self.progress)).encode())

    @property
    def is_named(self) -> bool:
        """Whether the output has its final name and only the record remains to be removed."""
        return self.progress.complete and not self.path.exists()

    def append(self, content: bytes, rows: int = 0, unreadable: int = 0) -> None:
        """Appends finished rows and then updates the record; raises OSError."""
        with open(self.path, "ab") as file:
            file.truncate(self.progress.bytes)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self.progress.add(len(content), rows, unreadable)
        self.write_progress()

    def finish(self, complete: Callable[[Path], Path]) -> None:
        if not self.is_named:
            self.progress.complete = True
            self.write_progress()
            files.rename_durably(complete(self.path), self.out)
        self.discard()

    def discard(self) -> None:
        """Removes the partial files; the record last, because it identifies the others."""
        self.path.unlink(missing_ok=True)
        files.remove_leftovers(self.record.parent, f"{self.record.name}.")
        self.record.unlink(missing_ok=True)


def write_table(
    reader: MoleculeModel[Result],
    columns: Sequence[AddedColumn],
    cells: Callable[[Result, list[str]], list[Cells]],
    source: str | Sequence[str],
    out: Path,
    reading: ReadOptions,
    options: tuple[str, ...],
    writers: Mapping[str, MakeWriter],
    is_whole: bool = False,
    watch: Callable[[Smiles, Result], None] | None = None,
    remarks: Mapping[str, Counter[str]] | None = None,
) -> dict:
    """Writes a reader's results for every row of a table, of some SMILES, or of standard input.

    ``cells`` gets results, of the whole table at once if ``is_whole``, and the errors of their rows, "" for none.
    ``options`` is what else the output depends on. ``watch`` gets results of this call before they are written.
    ``remarks`` are counted by ``cells``; the result has those of all rows, also of interrupted calls.
    """
    make_writer, resume = find_output_writer(out, writers), reading.resume
    of_input, names = (reading.smiles_column, reading.delimiter, reading.sheet), [column.name for column in columns]
    counts = {"errors": Counter[str](), **(remarks or {})}
    all_rows = partial(rows_of, source, *of_input) if isinstance(source, str) and is_file(source) else None
    if resume and is_standard_output(out):
        raise InputError("what goes to standard output cannot be resumed: name a file with -o")
    if resume and all_rows is None:
        raise InputError(f"{source} can be read only once, so it cannot be resumed: save it in a file first")
    if isinstance(source, str):
        check_output(out, source)
    with opened(source, *of_input) as opened_table:
        table = with_decimal(opened_table)
        writer = make_writer(table.columns, columns, table)
        read = samples_of(table.columns, reader.asked_conditions, "the input", table.delimiter, all_rows)

        def results(done: int) -> Iterator[tuple[list[Row], Result]]:
            rows = in_chunks(islice(table.rows, done, None), molecules_at_once(reader.device))
            chunks = compute_chunks(reader, rows, read)
            return as_one(chunks) if is_whole else chunks

        def encode(rows: list[Row], result: Result, errors: list[str]) -> bytes:
            if watch is not None:
                watch(read(rows), result)
            return writer.encode(rows, cells(result, errors))

        fill_with = partial(fill, results, encode, writer, reading.strict, table, counts)
        try:
            if is_standard_output(out):
                progress = fill_with(StandardOutput())
            else:
                of_output = (*map(str, table.types), out.suffix, current().precision, reader.featurizer, __version__)
                job = job_digest(reader, source, *of_input, *of_output, *names, *options)
                progress = continued(out, job, resume, fill_with, writer)
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror}") from None
    errors = dict(Counter(progress.counts.get("errors")).most_common())
    result = {"rows": progress.rows, "unreadable": progress.unreadable, "output": str(out)}
    return {**result, **progress.counts, "errors": errors}


def continued(
    out: Path, job: str, resume: bool, fill_with: Callable[[PartialFile], Progress], writer: TableWriter
) -> Progress:
    file = behind_link(out)
    busy = f"another process is writing {out}: wait for it, or choose another output"
    with files.locked(file.with_name(f".{file.name}.lock"), busy):
        if resume and (finished := finished_progress(out, job)):
            return finished
        replaced = out.exists() and not (resume and record_of(file).exists())
        grown = PartialFile(file, job, resume)
        if resume and not grown.progress.bytes:
            say([f"{out} has no finished rows of this job to continue: starting with the first row"])
        with advising(f"{grown.path} keeps the finished rows: continue with the same command and --resume"):
            if not grown.is_named:
                fill_with(grown)
            grown.finish(writer.complete)
    with contextlib.suppress(OSError), files.replacing(finished_record(out)) as record:
        record.write(json.dumps(vars(replace(grown.progress, job=stamped(job, out)))).encode())
    say([f"replaced {out}"] * replaced)
    return grown.progress


def record_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.partial.json")


def finished_record(out: Path) -> Path:
    """The file in the cache that says which job has finished an output."""
    return cache_root() / f"finished-{hashlib.sha256(os.fsencode(os.path.realpath(out))).hexdigest()[:16]}"


def stamped(job: str, out: Path) -> str:
    status = out.stat()
    return f"{job} {status.st_size} {status.st_mtime_ns}"


def finished_progress(out: Path, job: str) -> Progress | None:
    """The progress of an output that this job has finished, and says so; None if that is not certain."""
    if record_of(behind_link(out)).exists():
        return None
    with contextlib.suppress(OSError, ValueError):
        progress = READ_PROGRESS.validate_json(finished_record(out).read_bytes())
        if progress.job == stamped(job, out):
            say([f"{out} is finished, with {counted(progress.rows, 'row')}; without --resume it is computed again"])
            return progress
    return None


def find_output_writer(out: Path, writers: Mapping[str, MakeWriter] = WRITERS) -> MakeWriter:
    return find_writer(Path("out.csv") if is_standard_output(out) else out, writers)


def is_standard_output(out: Path) -> bool:
    return str(out) == STANDARD_OUTPUT


def opened(source: str | Sequence[str], *reading: str | None) -> contextlib.AbstractContextManager[Table]:
    if isinstance(source, str):
        return open_table(source, *reading)
    return contextlib.nullcontext(table_of_smiles(source))


def job_digest(reader: MoleculeModel, source: str | Sequence[str], *settings: str | None) -> str:
    """A digest of weights, configs, input and settings; a pipe is not read for it."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    if isinstance(source, str) and is_file(source):
        digest.update(sha256_of_file(Path(source)).encode())
    for model, config in reader.models:
        digest.update(config_to_json(config).encode())
        for part in digest_parts(model):
            digest.update(part)
    return digest.hexdigest()


def fill(
    results: Callable[[int], Iterator[tuple[list[Row], Result]]],
    encode: Callable[[list[Row], Result, list[str]], bytes],
    writer: TableWriter,
    strict: bool,
    table: Table,
    counts: dict[str, Counter[str]],
    output: PartialFile | StandardOutput,
) -> Progress:
    """Appends the ``results`` from the first row on that is missing; discards all if the input is unusable."""
    first, named, progress, header = list[str](), list[str](), output.progress, table.header
    for name, of_rows in progress.counts.items():
        counts[name].update(of_rows)
    progress.counts = counts  # type: ignore[assignment]
    on_terminal = isinstance(output, StandardOutput) and sys.stdout.isatty()  # where a bar would mix with the rows
    try:
        if progress.bytes == 0:
            output.append(writer.header())
        with tqdm(initial=progress.rows, unit=" molecules", disable=on_terminal or None) as bar:
            for rows, result in results(progress.rows):
                reasons = [row.error or error for row, error in zip(rows, result.errors, strict=True)]
                if strict:
                    refuse_errors(reasons, progress.rows + header)
                if progress.rows + len(rows) > writer.most_rows:
                    raise InputError(f"a sheet has at most {writer.most_rows:,} rows: write .csv or .parquet")
                encoded = encode(rows, result, reasons)
                counts["errors"].update(DETAILS.sub("...", reason) for reason in reasons if reason)
                output.append(encoded, len(rows), sum(map(bool, reasons)))
                numbered = list(enumerate(zip(rows, reasons, strict=True), progress.rows - len(rows) + header + 1))
                if len(first) <= MOST_NAMED:
                    first += [f"row {number} ({reason})" for number, (_, reason) in numbered if reason]
                if len(named) <= MOST_NAMED:
                    read = [(number, row.smiles) for number, (row, reason) in numbered if not reason]
                    named += [f"row {number} ({text})" for number, text in read if ignored_name(text)]
                bar.update(len(rows))
        if isinstance(output, PartialFile) and progress.rows == progress.unreadable > 0:
            column = table.columns[table.smiles_place]
            raise InputError(f"no row has a readable molecule in the column {column!r}: {', '.join(first[:1])}")
    except InputError:
        if isinstance(output, PartialFile):
            output.discard()
        raise
    for what, places in (("unreadable", first), ("read without the text after the SMILES", named)):
        if places and not on_terminal:
            print(f"{what}: {', '.join(places[:MOST_NAMED])}{', ...' * (len(places) > MOST_NAMED)}", file=sys.stderr)
    return progress


def refuse_errors(reasons: list[str], rows_before: int) -> None:
    for row, reason in enumerate(reasons, rows_before + 1):
        if reason:
            raise InputError(f"row {row} cannot be read: {reason}")
