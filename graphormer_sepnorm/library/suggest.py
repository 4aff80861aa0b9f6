"""Suggests molecules of a library to measure next: the most promising ones that differ from each other."""

import contextlib
import io
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from rdkit import Chem

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.chem.fingerprints import pick_diverse
from graphormer_sepnorm.chem.properties import molecule_key
from graphormer_sepnorm.chem.smiles import truncated
from graphormer_sepnorm.errors import InputError, find_target
from graphormer_sepnorm.library.part_writer import PartOptions, Selection
from graphormer_sepnorm.library.run import find_partitions, predict_library
from graphormer_sepnorm.options import Promise
from graphormer_sepnorm.output.column import shown_decimals
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.output.resumable_writer import find_output_writer, is_standard_output, print_bytes
from graphormer_sepnorm.predict.acquisition import Acquisition
from graphormer_sepnorm.predict.domain import Domain
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.predict.side_by_side import parts_of
from graphormer_sepnorm.project.judge import PROBABILITY
from graphormer_sepnorm.project.profile import IMPROVEMENT, Profile
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.tables.formats import kind_of, named_column, open_table
from graphormer_sepnorm.tables.formats.table import Row, cell_text
from graphormer_sepnorm.tables.formats.text import OF_MOLFILE
from graphormer_sepnorm.tables.label_text import Notation
from graphormer_sepnorm.tables.rows import id_column_among, read_samples, separators, with_decimal
from graphormer_sepnorm.tables.writers import write_whole
from graphormer_sepnorm.tables.writers.base import AddedColumn, Cells, DelimitedWriter, as_utf8
from graphormer_sepnorm.tasks import TASKS

POOL_PER_PICK = 20
LEAST_POOL = 1000
SHOWN, LONGEST_SHOWN = 10, 60  # rows for people, and characters of a SMILES


@dataclass(frozen=True)
class SuggestRequest:
    """How many molecules to suggest, and how they are ranked; raises InputError for what does not fit together."""

    count: int
    by: Promise = "confidence-bound"
    target: str | None = None  # None: the only one
    minimize: bool = False
    best: float | None = None  # value so far; None: that of the training molecules
    kappa: float = 1.0  # of the confidence bound
    distance: float = 0.3  # least Tanimoto distance
    profile: Profile | None = None  # ranks by the probability of all its criteria, or by hypervolume

    def __post_init__(self) -> None:
        of_target = (self.target, self.minimize, self.best, self.kappa)
        is_of_target = of_target != (None, False, None, type(self).kappa)
        problems = {
            f"-n {self.count}: ask for one molecule or more": self.count < 1,
            f"--distance {self.distance:g}: a Tanimoto distance is between 0 and 1": not 0 <= self.distance <= 1,
            f"--kappa {self.kappa:g}: choose 0 or more": not (math.isfinite(self.kappa) and self.kappa >= 0),
            f"--kappa is for --by confidence-bound, not for --by {self.by}": (
                self.kappa != type(self).kappa and self.by != "confidence-bound"
            ),
            f"--best is for --by expected-improvement, not for --by {self.by}": (
                self.best is not None and self.by != "expected-improvement"
            ),
            "--profile ranks by all its criteria, or --by hypervolume: omit --target, --minimize, --best, --kappa": (
                self.profile is not None and (is_of_target or self.by not in ("confidence-bound", "hypervolume"))
            ),
            "--by hypervolume is for the criteria of a --profile": self.by == "hypervolume" and not self.profile,
        }
        if sentences := [words for words, is_found in problems.items() if is_found]:
            raise InputError(sentences[0])


def acquisition_of(predictor: PredictingModel, request: SuggestRequest) -> Acquisition:
    """The ranking criterion of the molecules; raises InputError where the model does not support it."""
    if request.target is None and len(predictor.targets) > 1:
        raise InputError(f"the model predicts {', '.join(predictor.targets)}: choose one of them with --target")
    target = predictor.targets[0] if request.target is None else find_target(request.target, predictor.targets)
    if request.by == "prediction":
        return Acquisition("prediction", target, request.minimize)
    if TASKS[predictor.kind].predicts_probabilities:
        raise InputError(f"--by {request.by} is for regression models: rank probabilities with --by prediction")
    if not predictor.gives_spread:
        raise InputError(f"--by {request.by} needs a model that estimates its errors, such as one of your table")
    best, rows = request.best, predictor.trust.rows if predictor.trust else None
    if request.by == "expected-improvement" and best is None:
        best = rows.best(predictor.targets.index(target), request.minimize) if rows is not None else math.nan
        if math.isnan(best):
            raise InputError("the model keeps no training labels: name the best value so far with --best")
    return Acquisition(request.by, target, request.minimize, best or 0.0, request.kappa)


def suggest(
    predictor: PredictingModel,
    source: str,
    out: Path,
    request: SuggestRequest,
    options: PartOptions | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    device: str = "auto",
    for_people: bool = False,
) -> dict:
    """Writes the molecules of a library to measure next, best first; interrupted work continues in ``OUT.parts``."""
    if is_standard_output(out) and scheduler:
        raise InputError("with --scheduler, name the output: -o OUT.csv in a folder that all workers have access to")
    find_output_writer(out)
    if out.exists() and any(out.samefile(path) for path in find_partitions(source).values()):
        raise InputError(f"{out} is the input: choose another output")
    acquisition = None if request.profile else acquisition_of(predictor, request)
    count = sum(len(domain.bits) for domain in domains_of(predictor))  # all of them can be among the best
    size = max(LEAST_POOL, POOL_PER_PICK * request.count) + count
    is_volume = request.by == "hypervolume"
    of_profile = IMPROVEMENT if is_volume else PROBABILITY
    ranked_by, lowest = (acquisition.column, acquisition.lowest_first) if acquisition else (of_profile, False)
    selection = Selection(ranked_by, size, lowest=lowest)
    profile = request.profile and replace(request.profile, with_hypervolume=is_volume)
    options = replace(options or PartOptions(selection), selection=selection, acquisition=acquisition, profile=profile)
    with folder_of_parts(out) as folder:
        result = predict_library(predictor, source, folder, options, scheduler, workers, device, is_own=True)
        columns, pool = read_pool(predictor, source, Path(result["top"]), options)
        fresh = without_known(predictor, pool)
        if not fresh:
            which = "all readable ones" if len(pool) < size else f"its best {size:,} rows"
            raise InputError(f"{source} has no molecule to suggest: {which} were already measured")
        picked = pick(fresh, request)
        options = replace(options, answers=replace(options.answers, domain=predictor.trust is not None))
        similarity = write_picked(predictor, source, out, columns, picked, options, for_people)
    usual = predictor.trust.domain.usual_similarity if predictor.trust else None
    return {
        "suggested": len(picked),
        **{name: result[name] for name in ("rows", "unreadable")},
        "left_out": len(pool) - len(fresh),
        "put_last": sum(bool(each.warning) for each in fresh),
        "suggested_last": sum(bool(each.warning) for each in picked),
        "unlike": 0 if usual is None else int((similarity < usual).sum()),
        "usual_similarity": usual,
        "best": acquisition.best if acquisition and acquisition.by == "expected-improvement" else None,
        "output": str(out),
    }


@contextlib.contextmanager
def folder_of_parts(out: Path) -> Iterator[Path]:
    """The folder ``OUT.parts``, which is kept if its use is interrupted; a temporary one for standard output."""
    if is_standard_output(out):
        with tempfile.TemporaryDirectory() as temporary, advising("name a file with -o to keep what is done"):
            yield Path(temporary)
        return
    folder = out.with_name(f"{out.name}.parts")
    try:
        yield folder
    except InputError:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a job that left nothing
        raise
    shutil.rmtree(folder)


class Candidate(NamedTuple):
    """One of the best rows of a library."""

    row: Row
    sample: Any  # what the model reads of it
    mol: Chem.Mol
    warning: str  # "" if there is none


def read_pool(
    predictor: PredictingModel, source: str, top: Path, options: PartOptions
) -> tuple[list[str], list[Candidate]]:
    """The columns of the library ``source``, and the rows of ``top.parquet`` in them, best first."""
    with pq.ParquetFile(top) as file:
        table = file.read()
    added = len(options.of_predictions(predictor).all) + 1  # the row in place of the error, and the partition
    columns = table.column_names[:-added]
    partitions = table.columns[-1].to_pylist()
    files, asked = find_partitions(source), predictor.asked_conditions.places(columns, str(top))
    with contextlib.redirect_stderr(io.StringIO()):  # the processes that predicted the files have said it of them
        as_there = {name: reading_of(predictor, columns, files[name], options) for name in set(partitions)}
    fields = zip(*(map(cell_text, column.to_pylist()) for column in table.columns[:-added]), strict=True)
    rows, samples = [], []
    for texts, name in zip(fields, partitions, strict=True):
        places, notations = as_there[name]
        row = Row(list(texts), next((texts[place] for place in places if texts[place]), ""))
        rows.append(row)
        of_places = dict(zip(asked, notations, strict=True))
        samples.append(read_samples(asked, of_places, [row])[0] if asked else row.smiles)
    molecules = read_molecules(predictor.featurizer, samples)
    told = [domain.warnings_on(molecules) for domain in domains_of(predictor)]
    warnings = [" ".join(dict.fromkeys(filter(None, texts))) for texts in zip([""] * len(rows), *told, strict=True)]
    mols = [mol for mol in molecules.mols if mol is not None]  # all, as what was ranked could be read
    return columns, list(starmap(Candidate, zip(rows, samples, mols, warnings, strict=True)))


def reading_of(
    predictor: PredictingModel, columns: list[str], path: Path, options: PartOptions
) -> tuple[list[int], list[Notation]]:
    """The places of the columns with the molecules of a partition, the first that is not empty, and its notations."""
    with open_table(path, named_column(path, options.smiles_column), options.delimiter) as table:
        own = [as_utf8(table.columns[table.smiles_place])]
        places = predictor.asked_conditions.places(table.columns, str(path))
        notations = separators(table.rows, places, table.delimiter) if places else {}
    if kind_of(path) == ".sdf" and options.smiles_column is None:
        own = [f"smiles{OF_MOLFILE}", "smiles"]
    return [columns.index(name) for name in own if name in columns], [notations[place] for place in places]


def domains_of(predictor: PredictingModel) -> list[Domain]:
    return [model.trust.domain for model in parts_of(predictor) if model.trust]


def without_known(predictor: PredictingModel, pool: list[Candidate]) -> list[Candidate]:
    """The rows of molecules that were not measured by all models, each molecule once."""
    first: dict[str, Candidate] = {}
    domains = domains_of(predictor)
    for each in pool:
        if not domains or not all(domain.knows(each.mol) for domain in domains):
            first.setdefault(molecule_key(each.mol), each)
    return list(first.values())


def pick(pool: list[Candidate], request: SuggestRequest) -> list[Candidate]:
    """The molecules to suggest, as ``pick_diverse``; those with a warning after all others."""
    picked: list[Candidate] = []
    for warned in (False, True):
        some = [each for each in pool if bool(each.warning) == warned]
        places = pick_diverse([each.mol for each in some], request.count - len(picked), request.distance)
        picked += [some[place] for place in places]
    return picked


def lines_for_people(columns: list[str], predicted: PredictionColumns, rows: list[Row], added: list[Cells]) -> bytes:
    """Rank, name, SMILES, predictions of the chosen targets, and the nearest training molecule."""
    decimals, chosen, id_column = shown_decimals(predicted.model), predicted.acquisition, id_column_among(columns)
    decimals_of: dict[str, int | None] = {"similarity": 2}
    for target in [chosen.target] if chosen else predicted.model.targets:
        decimals_of |= dict.fromkeys((target, f"{target}_std"), decimals.get(target))
    if chosen:
        decimals_of[chosen.column] = decimals.get(chosen.target)
    else:
        decimals_of |= dict.fromkeys((PROBABILITY, "desirability", IMPROVEMENT), 3)
    table = [["rank", *(str(place) for place in range(1, len(rows) + 1))]]
    if id_column is not None:
        table.append([id_column, *(row.fields[columns.index(id_column)] for row in rows)])
    table.append(["SMILES", *(truncated(row.smiles, LONGEST_SHOWN) for row in rows)])
    for column, cells in zip(predicted.all, added, strict=True):
        if column.name in decimals_of:
            numbers = np.asarray(cells, np.float64)[: len(rows)].tolist()
            table.append([column.name, *(shown(number, decimals_of[column.name]) for number in numbers)])
        elif column.name in ("nearest_id", "weakest"):
            table.append([column.name, *map(str, cells[: len(rows)])])
    padded = [[text.ljust(max(map(len, column))) for text in column] for column in table]
    return "".join("  ".join(line).rstrip() + "\n" for line in zip(*padded, strict=True)).encode()


def write_picked(
    predictor: PredictingModel,
    source: str,
    out: Path,
    names: list[str],
    picked: list[Candidate],
    options: PartOptions,
    for_people: bool,
) -> np.ndarray:
    """Writes the suggested molecules with their rank and predictions; returns their similarities, if known."""
    columns, rows = options.of_predictions(predictor), [each.row for each in picked]
    predictions = columns.reader.compute(read_molecules(predictor.featurizer, [each.sample for each in picked]))
    told = columns.cells(predictions, predictions.errors)
    added: list[AddedColumn] = [AddedColumn("rank"), *columns.all]
    cells: list[Cells] = [np.arange(1.0, len(rows) + 1), *told]
    if not is_standard_output(out):
        first = next(iter(find_partitions(source).values()))
        with open_table(first, named_column(first, options.smiles_column), options.delimiter) as table:
            like = with_decimal(table) if kind_of(first) in (".csv", ".tsv", ".txt") else None
            write_whole(out, names, rows, added, cells, like)
    elif for_people:
        print_bytes(lines_for_people(names, columns, rows[:SHOWN], told))
    else:
        writer = DelimitedWriter(names, added)
        print_bytes(writer.header() + writer.encode(rows, cells))
    return np.empty(0) if predictions.nearness is None else predictions.nearness.similarity
