"""Predictions for libraries of many files: a Parquet part for each partition, of which a call writes those missing."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from distributed import KilledWorker
from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from graphormer_sepnorm.config import STRICT
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library import part_writer as parts
from graphormer_sepnorm.library.part_writer import HERE, Assignment, Models, PartOptions, Processes, Report, Selection
from graphormer_sepnorm.output.resumable_writer import job_digest
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.system.files import locked, remove_leftovers, replacing, write_atomically, writing
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.system.workers import available_cores
from graphormer_sepnorm.tables.formats import is_table_name
from graphormer_sepnorm.tables.formats.cells import PARQUET
from graphormer_sepnorm.tables.formats.table import free_name
from graphormer_sepnorm.version import __version__

MANIFEST, SUCCESS, PARTS, TOP, LOCK = "manifest.json", "_SUCCESS", "parts", "top.parquet", "library.lock"
AGAIN = "the parts that are done are kept, the same command goes on with the others"
SHOWN = 5
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, config=STRICT)
class Manifest:
    """The inputs of the parts in a folder."""

    version: str
    models: str  # digest of configs, weights and what is next to them
    options: PartOptions
    partitions: dict[str, str]  # digest of each file by name; "" if it cannot be read

    def as_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    def job(self) -> str:
        """Digest of everything that a part depends on apart from its partition."""
        return hashlib.sha256(replace(self, partitions={}).as_json()).hexdigest()


def choose_rows(
    targets: Sequence[str], by: str | None, keep_top: int | None, threshold: float | None, lowest: bool
) -> Selection:
    """The selection by one of the targets that are written, which may be omitted if there is only one."""
    names, selection = ", ".join(targets), Selection(by or targets[0], keep_top, threshold, lowest)
    if selection.by not in targets:
        raise InputError(f"--by {by} is no target of the predictions, which are of {names}")
    if selection.keeps_all and (lowest or by is not None):
        name = "--lowest" if lowest else "--by"
        raise InputError(f"{name} needs --keep-top or --threshold: without them, all rows are kept")
    if by is None and len(targets) > 1 and not selection.keeps_all:
        raise InputError(f"the models predict {names}: say with --by which of them rows are kept by")
    return selection


def predict_library(
    model: PredictingModel, source: str, out: Path, options: PartOptions, where: Processes = HERE, is_own: bool = False
) -> dict:
    """Writes the predictions of all partitions that have none yet; ``is_own`` folders may lose those of other jobs."""
    files = find_partitions(source)
    check_folder(out)
    busy = f"another process is writing to {out}: wait for it, or choose another folder"
    with locked(out / LOCK, busy), removing_failed(out):
        models = job_digest(model, (), model.featurizer, model.digest)
        with ThreadPoolExecutor(available_cores()) as threads:
            digests = dict(zip(files, threads.map(digest_of_file, files.values()), strict=True))
        manifest = Manifest(__version__, models, options, digests)
        adopt(manifest, out, is_own)
        assignments, reports = assign(files, out / PARTS, manifest)
        if missing := [each for each in assignments if each.part not in reports]:
            (out / SUCCESS).unlink(missing_ok=True)
            plugin = Models(model, options, where.device, f"graphormer-sepnorm-{manifest.job()}")
            with advising(AGAIN):
                reports |= compute(missing, plugin, where, is_told=len(files) > 1 or bool(where.scheduler))
        done = reports.values()
        summary: dict = {name: sum(getattr(each, name) for each in done) for name in ("rows", "unreadable", "kept")}
        cpu_seconds, memory = round(sum(each.cpu_seconds for each in done), 1), max(each.memory_mib for each in done)
        summary |= {"partitions": len(done), "output": str(out), "cpu_seconds": cpu_seconds, "memory_mib": memory}
        if options.selection.keep_top is not None:
            write_top(assignments, reports, len(options.of_predictions(model).all), options.selection, out / TOP)
            summary["top"] = str(out / TOP)
        write_atomically(out / SUCCESS, json.dumps(summary).encode())
    return summary


def find_partitions(source: str) -> dict[str, Path]:
    """A file, the tables in a folder or files that match a pattern, by paths relative to the common parent."""
    if Path(source).is_dir():
        paths = [path for path in Path(source).glob("[!._]*") if is_table_name(path)]
    else:
        paths = [Path(source)] if Path(source).is_file() else list(map(Path, glob.glob(source, recursive=True)))
    files = sorted(Path(os.path.abspath(path)) for path in paths if path.is_file())
    if not files:
        raise InputError(f"there are no files {source}" if not Path(source).is_dir() else f"{source} has no tables")
    root = os.path.commonpath([path.parent for path in files])
    return {path.relative_to(root).as_posix(): path for path in files}


def check_folder(out: Path) -> None:
    """Raises InputError unless ``out`` is a folder of an earlier call, empty, or does not exist."""
    if is_table_name(out) or (out.exists() and not out.is_dir()):
        words = "sounds like" if is_table_name(out) else "is"
        raise InputError(f"predictions of a library need a folder, and {out} {words} a file: choose another -o")
    names = [path.name for path in out.glob("*")]
    if MANIFEST not in names and any(name != LOCK and not name.startswith(f".{MANIFEST}.") for name in names):
        raise InputError(f"{out} holds other files: choose a new folder")


def digest_of_file(path: Path) -> str:
    """The digest of a file; "" if it cannot be read."""
    with contextlib.suppress(OSError):
        return sha256_of_file(path)
    return ""


def removed_job(folder: Path, always: bool) -> bool:
    """Removes everything that a job wrote into its folder, ``always`` or if no part is finished; whether it did."""
    if any((folder / PARTS).rglob(f"[!.]*{PARQUET}")) and not always:
        return False
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    for name in (TOP, SUCCESS, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def removing_failed(folder: Path) -> Iterator[None]:
    """Context manager: a job that fails before a part is finished is removed."""
    try:
        yield
    except InputError:
        removed_job(folder, always=False)
        raise


def adopt(manifest: Manifest, folder: Path, is_own: bool) -> None:
    """Writes the manifest; another job without a finished part, or of a folder that ``is_own``, is removed."""
    path, before = folder / MANIFEST, None
    if path.exists():
        with contextlib.suppress(OSError, ValueError):
            before = TypeAdapter(Manifest).validate_json(path.read_bytes())
        if before != manifest and not removed_job(folder, always=is_own):
            if before is None:
                raise InputError(f"{path} is damaged: choose a new folder")
            names = ("version of the package", "models", "options", "input")
            facts = [(each.version, each.models, each.options, each.partitions.keys()) for each in (before, manifest)]
            if others := " and ".join(name for name, was, now in zip(names, *facts, strict=True) if was != now):
                raise InputError(f"{folder} was begun with other {others}: remove it, or choose another -o")
    write_atomically(path, manifest.as_json())


def assign(files: dict[str, Path], folder: Path, manifest: Manifest) -> tuple[list[Assignment], dict[str, Report]]:
    """The assignment of each partition, and the reports of complete parts.

    Raises:
        InputError: two partitions have the same part, or a part is of another job or content.
    """
    assignments, reports, job = {}, {}, manifest.job()
    for name, path in files.items():
        part = os.path.abspath(folder / f"{name.removesuffix(PARQUET)}{PARQUET}")
        if part in assignments:
            raise InputError("two partitions have names that differ only in .parquet: rename one")
        assignments[part] = each = Assignment(str(path), part, job, manifest.partitions[name], name)
        if report := parts.read_report(Path(part)):
            if (report.job, report.content) != (each.job, each.content):
                problem = f"{path} has changed since {part} was written"
                raise InputError(f"{problem}: remove the part to compute it again, or choose a new folder")
            reports[part] = report
    return list(assignments.values()), reports


def compute(missing: list[Assignment], models: Models, processes: Processes, is_told: bool) -> dict[str, Report]:
    """Writes the missing parts, and reports failed partitions immediately, and, if ``is_told``, the processes."""
    reports: dict[str, Report] = {}
    failed: dict[str, str] = {}
    try:
        with (
            parts.connected(processes, len(missing)) as client,
            tqdm(total=len(missing), unit=" partitions", disable=None) as bar,
        ):
            if is_told:
                tqdm.write(parts.describe(client), sys.stderr)
            for assignment, outcome in parts.compute_parts(client, models, missing):
                if isinstance(outcome, Report):
                    reports[assignment.part] = outcome
                elif isinstance(outcome, OSError) and outcome.errno in DISK_FULL:  # the others would fail too
                    raise InputError(f"cannot write {assignment.part}: {outcome.strerror}; make room: {AGAIN}")
                else:
                    failed[assignment.name] = why_failed(outcome)
                    if len(missing) > 1:
                        tqdm.write(f"{assignment.name} failed: {failed[assignment.name]}", sys.stderr)
                bar.update()
    finally:
        for folder in {Path(assignment.part).parent for assignment in missing}:
            remove_leftovers(folder)
    if failed and len(missing) == 1:
        raise InputError(": ".join(*failed.items()))
    if failed:
        listed = "; ".join(f"{name} ({reason})" for name, reason in list(failed.items())[:SHOWN])
        more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        raise InputError(f"{len(failed)} of {len(missing)} partitions failed: {listed}{more}; {AGAIN}")
    return reports


def why_failed(error: BaseException) -> str:
    """Why a partition failed, in one line."""
    if isinstance(error, KilledWorker):
        return "the workers that computed it were killed, perhaps for want of memory"
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}".partition("\n")[0]


def write_top(
    assignments: list[Assignment],
    reports: dict[str, Report],
    added: int,
    selection: Selection,
    path: Path,
) -> None:
    """Writes the best rows of all parts, best first, with the name of their partition."""
    assert selection.keep_top is not None
    try:
        schema = unified([pq.read_schema(each.part).remove_metadata() for each in assignments], added)
        (compared,) = {report.compared for report in reports.values()}
    except (pa.ArrowException, ValueError):
        problem = "columns of different types, or only some have a column with the name of an added one"
        advice = "save all in one format, or name the columns to keep with predict --columns"
        raise InputError(f"the partitions have {problem}: {advice}") from None
    schema = schema.append(pa.field(free_name("partition", schema.names, "_of_row"), pa.string()))

    def rows_of_part(assignment: Assignment) -> pa.Table:
        with pq.ParquetFile(assignment.part) as file:
            rows = file.read()
        rows = rows.append_column(schema.names[-1], pa.array([assignment.name] * len(rows), pa.string()))
        return pa.concat_tables([schema.empty_table(), rows], promote_options="permissive")

    with writing(path), replacing(path) as file:
        best = parts.best_rows(map(rows_of_part, assignments), compared, selection.keep_top, selection.lowest, schema)
        pq.write_table(best, file)


def unified(schemas: list[pa.Schema], added: int) -> pa.Schema:
    """All columns of the parts; those at the end that all parts have, such as predictions, stay at the end."""
    from_the_end = zip(*(reversed(schema.names) for schema in schemas), strict=False)
    shared = sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, from_the_end))
    if shared < added:
        raise ValueError("the added columns have different names")
    own = [pa.schema(list(schema)[: len(schema) - shared]) for schema in schemas]
    last = [pa.schema(list(schema)[len(schema) - shared :]) for schema in schemas]
    return pa.schema([field for part in (own, last) for field in pa.unify_schemas(part, promote_options="permissive")])
