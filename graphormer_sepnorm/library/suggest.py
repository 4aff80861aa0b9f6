"""Suggests molecules of a library to measure next: the most promising ones that differ from each other."""

import contextlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample, read_molecules
from graphormer_sepnorm.chem.fingerprints import pick_diverse
from graphormer_sepnorm.chem.properties import molecule_key
from graphormer_sepnorm.chem.smiles import truncated
from graphormer_sepnorm.errors import InputError, find_target
from graphormer_sepnorm.library.part_writer import HERE, PartOptions, Processes, Selection
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
from graphormer_sepnorm.tables.rows import id_column_among, with_decimal
from graphormer_sepnorm.tables.writers import WRITERS, write_whole
from graphormer_sepnorm.tables.writers.base import AddedColumn, Cells, DelimitedWriter
from graphormer_sepnorm.tables.writers.excel import ExcelWriter, Pairs
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
        default = type(self).kappa
        is_of_target = (self.target, self.minimize, self.best, self.kappa) != (None, False, None, default)
        is_by_bound = self.by == "confidence-bound"
        problems = {
            f"-n {self.count}: ask for one molecule or more": self.count < 1,
            f"--distance {self.distance:g}: a Tanimoto distance is between 0 and 1": not 0 <= self.distance <= 1,
            f"--kappa {self.kappa:g}: choose 0 or more": not (math.isfinite(self.kappa) and self.kappa >= 0),
            f"--kappa is for --by confidence-bound, not for --by {self.by}": self.kappa != default and not is_by_bound,
            f"--best is for --by expected-improvement, not for --by {self.by}": (
                self.best is not None and self.by != "expected-improvement"
            ),
            "--profile ranks by all its criteria, or --by hypervolume: omit --target, --minimize, --best, --kappa": (
                self.profile and (is_of_target or self.by not in ("confidence-bound", "hypervolume"))
            ),
            "--by hypervolume is for the criteria of a --profile": self.by == "hypervolume" and not self.profile,
        }
        for words in compress(problems, problems.values()):
            raise InputError(words)


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
    where: Processes = HERE,
    for_people: bool = False,
    about: Pairs = (),
) -> dict:
    """Writes the molecules of a library to measure next, best first; interrupted work continues in ``OUT.parts``.

    A workbook says what its models are, by the pairs of texts ``about`` them.
    """
    if is_standard_output(out) and where.scheduler:
        raise InputError("with --scheduler, name the output: -o OUT.csv in a folder that all workers have access to")
    find_output_writer(out)
    if out.exists() and any(out.samefile(path) for path in find_partitions(source).values()):
        raise InputError(f"{out} is the input: choose another output")
    acquisition = None if request.profile else acquisition_of(predictor, request)
    domains = [model.trust.domain for model in parts_of(predictor) if model.trust]
    known = sum(len(domain.bits) for domain in domains)  # all of them can be among the best
    size = max(LEAST_POOL, POOL_PER_PICK * request.count) + known
    is_volume = request.by == "hypervolume"
    of_profile = IMPROVEMENT if is_volume else PROBABILITY
    ranked_by, lowest = (acquisition.column, acquisition.lowest_first) if acquisition else (of_profile, False)
    selection = Selection(ranked_by, size, lowest=lowest)
    profile = request.profile and replace(request.profile, with_hypervolume=is_volume)
    options = replace(options or PartOptions(selection), selection=selection, profile=profile)
    options = replace(options, acquisition=acquisition, with_samples=True)
    with folder_of_parts(out) as folder:
        result = predict_library(predictor, source, folder, options, where, is_own=True)
        columns, pool = read_pool(predictor, Path(result["top"]), options, domains)
        first: dict[str, Candidate] = {}
        for each in pool:
            if not domains or not all(domain.knows(each.mol) for domain in domains):
                first.setdefault(molecule_key(each.mol), each)
        if not (fresh := first.values()):
            which = "all readable ones" if len(pool) < size else f"its best {size:,} rows"
            raise InputError(f"{source} has no molecule to suggest: {which} were already measured")
        picked: list[Candidate] = []
        for warned in (False, True):
            some = [each for each in fresh if bool(each.warning) == warned]
            places = pick_diverse([each.mol for each in some], request.count - len(picked), request.distance)
            picked += [some[place] for place in places]
        options = replace(options, answers=replace(options.answers, domain=predictor.trust is not None))
        similarity = write_picked(predictor, source, out, columns, picked, options, for_people, about)
    usual = predictor.trust.domain.usual_similarity if predictor.trust else None
    numbers: dict = {"suggested": len(picked), **{name: result[name] for name in ("rows", "unreadable")}}
    numbers |= {"left_out": len(pool) - len(fresh), "put_last": sum(bool(each.warning) for each in fresh)}
    numbers |= {"suggested_last": sum(bool(each.warning) for each in picked)}
    numbers |= {"unlike": 0 if usual is None else int((similarity < usual).sum()), "usual_similarity": usual}
    best = acquisition.best if acquisition and acquisition.by == "expected-improvement" else None
    return {**numbers, "best": best, "output": str(out)}


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
    predictor: PredictingModel, top: Path, options: PartOptions, domains: list[Domain]
) -> tuple[list[str], list[Candidate]]:
    """The columns of a library, and its rows in ``top.parquet``, best first."""
    with pq.ParquetFile(top) as file:
        table = file.read()
    added = len(options.of_predictions(predictor).all) + 2  # the row in place of the error, the sample, the partition
    fields = zip(*(map(cell_text, column.to_pylist()) for column in table.columns[:-added]), strict=True)
    read = [(smiles, tuple(texts)) for smiles, *texts in map(json.loads, table.columns[-2].to_pylist())]
    samples = [Sample(smiles, texts) if texts else smiles for smiles, texts in read]
    rows = [Row(list(texts), smiles) for texts, (smiles, _) in zip(fields, read, strict=True)]
    molecules = read_molecules(predictor.featurizer, samples)
    told = zip([""] * len(rows), *(domain.warnings_on(molecules) for domain in domains), strict=True)
    warnings = [" ".join(dict.fromkeys(filter(None, texts))) for texts in told]
    mols = [mol for mol in molecules.mols if mol is not None]  # all, as what was ranked could be read
    return table.column_names[:-added], list(starmap(Candidate, zip(rows, samples, mols, warnings, strict=True)))


def lines_for_people(columns: list[str], predicted: PredictionColumns, rows: list[Row], added: list[Cells]) -> bytes:
    """Rank, name, SMILES, predictions of the chosen targets, and the nearest training molecule."""
    decimals, chosen, id_column = shown_decimals(predicted.model), predicted.acquisition, id_column_among(columns)
    chances = () if chosen else (PROBABILITY, "desirability", IMPROVEMENT)
    decimals_of: dict[str, int | None] = {"similarity": 2, **dict.fromkeys(chances, 3)}
    for target in [chosen.target] if chosen else predicted.model.targets:
        names = (target, f"{target}_std", *([chosen.column] if chosen else []))
        decimals_of |= dict.fromkeys(names, decimals.get(target))
    table = [["rank", *map(str, range(1, len(rows) + 1))]]
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
    about: Pairs,
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
            workbook = {".xlsx": partial(ExcelWriter, about=[*about, *columns.about])}
            write_whole(out, names, rows, added, cells, like, WRITERS | workbook)
    elif for_people:
        print_bytes(lines_for_people(names, columns, rows[:SHOWN], told))
    else:
        writer = DelimitedWriter(names, added)
        print_bytes(writer.header() + writer.encode(rows, cells))
    return np.empty(0) if predictions.nearness is None else predictions.nearness.similarity
