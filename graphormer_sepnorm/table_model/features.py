"""Molecular features that members read, each kind computed once, on first use, and conditions encoded as numbers.

Axis letters: M molecules, D descriptors, C values of conditions: one for each numeric column, one for each word."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from rdkit import Chem
from scipy.sparse import csr_array, vstack

from graphormer_sepnorm.chem.descriptors import fast_descriptors
from graphormer_sepnorm.chem.features import FEATURIZERS, MoleculeGraph, as_written
from graphormer_sepnorm.chem.fingerprints import KINDS, MORGAN, SIZE, Kinds, count_fingerprints
from graphormer_sepnorm.chem.smiles import Molecule, molecule_of, one_molecule
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.predict.domain import Look, look_at
from graphormer_sepnorm.system.progress import tracked
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.tables import label_text
from graphormer_sepnorm.tables.label_text import as_float, is_missing, is_number, same_label
from graphormer_sepnorm.tables.labels import LabelledTable
from graphormer_sepnorm.tables.rows import condition_argument, condition_options, condition_text

CHUNK = 200  # molecules per call of a worker process: half a second
Rows = TypeVar("Rows")
MOST_WORDS = 100  # largest number of categories of a column
# Such as 37 C, pH 7.4, 24 h and 10 uM.
WITH_UNIT = re.compile(r"(pH *)?[-+]?\d+([.,]\d+)? *(\W?[CFK]|%|min|[hsd]|[mkun\u00b5\u03bc]?(M|g|g/m?L|L))?")
MOST_VALUES = 10  # distinct numbers that are a choice; each has two rows or more on average


@dataclass
class MoleculeFeatures:
    molecules: Sequence[Molecule]  # readable molecules or SMILES, without the parts that a featurizer strips
    computed: dict[Callable[["MoleculeFeatures"], Any], Any] = field(default_factory=dict)  # by function: a row each
    shared: dict[Callable[["MoleculeFeatures"], Any], Any] = field(default_factory=dict)  # computed by other models

    def __len__(self) -> int:
        return len(self.molecules)

    def of(self, view: Callable[["MoleculeFeatures"], Rows]) -> Rows:
        if view not in self.computed:
            self.computed[view] = self.shared[view] if view in self.shared else view(self)
            if isinstance(view, Counts) or view is descriptor_values:
                self.shared[view] = self.computed[view]
        return self.computed[view]

    def take(self, rows: np.ndarray) -> "MoleculeFeatures":
        kept = self.computed.items()
        computed = {view: each.take(rows) if isinstance(each, Graphs) else each[rows] for view, each in kept}
        return MoleculeFeatures([self.molecules[row] for row in rows.tolist()], computed)

    def read(self, featurizer: str) -> None:
        graphs = GraphsOf(as_written(featurizer))
        if {graphs, Counts(), descriptor_values, looks} <= self.computed.keys():
            return
        work = partial(read_chunk, graphs.featurizer)
        chunks = -(-len(self.molecules) // CHUNK)
        parts = [part for _, part in tracked(map_chunks(work, in_chunks(self.molecules, CHUNK), list), chunks)]
        of_parts, counts, described, seen = zip(*parts, strict=True) if parts else ((), (), (), ())
        self.computed[graphs] = graphs.packed(list(chain(*of_parts)))
        self.computed[Counts()] = csr_array(vstack([count_fingerprints([]), *counts], "csr"))
        self.computed[descriptor_values] = np.concatenate([fast_descriptors([]), *described])
        self.computed[looks] = np.fromiter(chain(*seen), object)


@dataclass(frozen=True)
class GraphsOf:
    """The graphs of molecules by a featurizer that does not standardize them."""

    featurizer: str

    def __call__(self, molecules: MoleculeFeatures) -> Graphs:
        written = [molecule if isinstance(molecule, str) else "" for molecule in molecules.molecules]
        mols = map(molecule_of, molecules.molecules)
        return self.packed([graph_of(self.featurizer, *each) for each in zip(mols, written, strict=True)])

    def packed(self, graphs: list[MoleculeGraph]) -> Graphs:
        return FEATURIZERS[self.featurizer].pack(graphs)


@dataclass(frozen=True)
class Counts:
    kinds: Kinds = KINDS

    def __call__(self, molecules: MoleculeFeatures) -> csr_array:
        return count_fingerprints(molecules.molecules, self.kinds)


def morgan(molecules: MoleculeFeatures) -> csr_array:
    """Morgan counts, from counts of several kinds that are known already: uint16 [M, SIZE]."""
    counts = next((view for view in molecules.computed if isinstance(view, Counts)), Counts())
    start = counts.kinds.index(MORGAN) * SIZE
    return molecules.of(counts)[:, start : start + SIZE]


def descriptor_values(molecules: MoleculeFeatures) -> np.ndarray:
    return fast_descriptors(molecules.molecules)


def looks(molecules: MoleculeFeatures) -> np.ndarray:
    return np.fromiter((look_at(molecule_of(each)) for each in molecules.molecules), object)


def graph_of(featurizer: str, mol: Chem.Mol, written: str) -> MoleculeGraph:
    with one_molecule(written):
        return FEATURIZERS[featurizer].features(mol, written)


def read_chunk(featurizer: str, smiles: Smiles) -> tuple[list[MoleculeGraph], csr_array, np.ndarray, list[Look]]:
    """Graphs, counts, descriptors and looks of a chunk of SMILES, each parsed once."""
    mols = [molecule_of(text) for text in smiles]
    graphs = [graph_of(featurizer, mol, text or "") for mol, text in zip(mols, smiles, strict=True)]
    return graphs, count_fingerprints(mols), fast_descriptors(mols), [look_at(mol) for mol in mols]


@dataclass(frozen=True)
class ConditionColumn:
    name: str
    words: tuple[str, ...] = ()  # distinct words in alphabetical order, "" for a missing one; none if numeric
    mean: float = 0.0  # mean and standard deviation of a numeric column
    scale: float = 1.0
    low: float | None = None  # range of a numeric column, if known
    high: float | None = None
    values: tuple[float, ...] | None = None  # the distinct numbers, if they are few
    median: float | None = None  # the number in place of missing ones, which a second value marks; None: never missing

    @property
    def choices(self) -> list[str]:
        """The texts of the words, or of the few numbers; empty for a column of many numbers."""
        return [word for word in self.words if word] or [f"{value:.10g}" for value in self.values or ()]

    @property
    def allowed(self) -> str:
        has_range = self.low is not None and self.high is not None
        return ", ".join(self.choices) or (f"{self.low:g} to {self.high:g}" if has_range else "numbers")

    @property
    def width(self) -> int:
        return len(self.words) or 1 + (self.median is not None)

    @property
    def gap_words(self) -> str:
        """The value that a missing condition is read as; empty if no training row lacks it."""
        if "" in self.words:
            return "a word of its own"
        return "" if self.median is None else f"{self.median:.6g}, the median"

    def encode(self, text: str) -> list[float]:
        """The encoded values of a condition; raises InputError if it is missing or an unknown word."""
        is_gap = is_missing(text)
        if is_gap and not self.gap_words:
            raise InputError(f"{self.name} is missing")
        if self.words:
            text = "" if is_gap else text
            if text not in self.words and same_label(text) in ("true", "false"):
                text = next((word for word in self.words if same_label(word) == same_label(text)), text)
            if text not in self.words:
                raise InputError(f"{self.name} is {text!r}: the model knows {', '.join(self.choices)}")
            return [float(text == word) for word in self.words]
        label_text.refuse_undecided(text, self.name, label_text.UNDECIDED)
        if not is_gap and not is_number(text):
            raise InputError(f"{self.name} is {text!r}, not a number")
        value = self.median if is_gap and self.median is not None else as_float(text)
        return [(value - self.mean) / self.scale, *([] if self.median is None else [float(is_gap)])]

    def warning(self, text: str) -> str:
        """A sentence on a missing condition, or a number that is not among those of the training rows; else ""."""
        if is_missing(text) and self.gap_words:
            return f"The condition {self.name} is missing and read as {self.gap_words}."
        if self.low is None or self.high is None or is_missing(text) or not is_number(text):
            return ""
        value = as_float(text)
        if value in self.values if self.values else self.low <= value <= self.high:
            return ""
        allowed = f"only {', '.join(self.choices)}" if self.values else f"{self.low:.6g} to {self.high:.6g}"
        return f"The condition {self.name} is {value:.6g}; training rows have {allowed}."

    def facts(self) -> dict:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Conditions:
    columns: tuple[ConditionColumn, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)  # the same for all molecules, by name

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> "Conditions":
        return cls(tuple(column_of(name, [row[place] for row in rows]) for place, name in enumerate(names)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.given)

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def under(self, values: Mapping[str, object]) -> "Conditions":
        """The same columns, with some conditions given for all; raises InputError for one that is unknown."""
        texts = {name: condition_text(str(value)) for name, value in values.items()}
        columns = {column.name: column for column in self.columns}
        for name, text in texts.items():
            if name not in columns:
                raise InputError(f"{name} is not a condition of the model, which reads {', '.join(columns) or 'none'}")
            columns[name].encode(text)
        return replace(self, given={**self.given, **texts})

    def encode(self, row: tuple[str, ...]) -> list[float]:
        """The values [C] of a molecule's conditions, the ``asked`` ones; raises InputError for an unknown word."""
        return [value for column, text in self.texts(row) for value in column.encode(text)]

    def texts(self, row: tuple[str, ...]) -> list[tuple[ConditionColumn, str]]:
        texts = {**self.given, **dict(zip(self.asked, row, strict=True))}
        return [(column, texts[column.name]) for column in self.columns]

    def remarks(self, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
        """A sentence on each column with missing conditions in training rows, and on how they are read."""
        for place, column in enumerate(self.columns):
            if missing := sum(is_missing(row[place]) for row in rows):
                cells = f"{missing:,} of {len(rows):,} cells are blank and read as {column.gap_words}"
                yield f"{column.name}: {cells}, and marked; --require-conditions skips these rows"

    def add_warnings(self, warnings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
        """The warnings of M molecules, each followed by those of its conditions; no ``rows`` add nothing."""
        if not rows:
            return list(warnings)
        sentences = ([column.warning(text) for column, text in self.texts(row)] for row in rows)
        return [" ".join(filter(None, [text, *each])) for text, each in zip(warnings, sentences, strict=True)]

    def encode_all(self, rows: Sequence[tuple[str, ...]]) -> tuple[np.ndarray, list[str]]:
        """The values float32 [M, C] of rows (0 in case of an error) and the error messages ("" if none)."""
        if self.asked and rows and not rows[0]:
            raise InputError(f"the model {needs(self.asked)}")
        values, errors = np.zeros((len(rows), self.width), np.float32), [""] * len(rows)
        for place, row in enumerate(rows):
            try:
                values[place] = self.encode(row)
            except InputError as error:
                errors[place] = str(error)
        return values, errors


def needs(names: Sequence[str]) -> str:
    """The end of a message on molecules that come without conditions."""
    return (
        f"needs the conditions {', '.join(names)}: give a table that has them, or the same for all molecules with "
        f"{condition_options(names)} (in Python: {condition_argument(names)})"
    )


def column_of(name: str, texts: Sequence[str]) -> ConditionColumn:
    """A numeric column if all texts but missing ones are numbers, otherwise a column of words."""
    filled = [text for text in texts if not is_missing(text)]
    if texts and not filled:
        raise InputError(f"--feature-columns {name} is blank in all training rows: leave it out")
    if all(map(is_number, filled)):
        numbers = np.array([as_float(text) for text in filled])
        low, high = float(numbers.min()), float(numbers.max())
        scale = float(numbers.std()) if low < high else 1.0
        distinct = np.unique(numbers)
        values = tuple(distinct.tolist()) if len(distinct) <= min(MOST_VALUES, len(numbers) // 2) else None
        # a number that was measured at
        median = float(np.quantile(numbers, 0.5, method="inverted_cdf")) if len(filled) < len(texts) else None
        return ConditionColumn(name, (), float(numbers.mean()), scale, low, high, values, median)
    if all(WITH_UNIT.fullmatch(text) for text in filled):
        advice = "write only the numbers into the cells, and the unit into the name of the column"
        raise InputError(f"--feature-columns {name} has numbers with units, such as {filled[0]!r}: {advice}")
    words = tuple(sorted({"" if is_missing(text) else text for text in texts}))
    for word in words:
        label_text.refuse_other_bytes(word, f"--feature-columns {name}")
    if len(words) > MOST_WORDS:
        raise InputError(f"--feature-columns {name} has {len(words)} distinct words, more than {MOST_WORDS}")
    return ConditionColumn(name, words)


def with_known(table: LabelledTable, conditions: Conditions) -> LabelledTable:
    """The table without the rows whose conditions cannot be encoded, which are skipped."""
    both = ([row.conditions for row in rows] for rows in (table.rows, table.usable))
    errors, of_usable = (conditions.encode_all(rows)[1] for rows in both)
    if not any(errors):
        return table
    unknown = [(row.number, row.smiles, error) for row, error in zip(table.usable, of_usable, strict=True) if error]
    kept, usable = ([place for place, error in enumerate(each) if not error] for each in (errors, of_usable))
    new_places = {old: new for new, old in enumerate(usable)}
    known = [each for each in table.duplicates if each.rows[0] in new_places]  # all its rows have the same conditions
    return replace(
        table,
        rows=[table.rows[place] for place in kept],
        structures=table.structures.take(kept),
        measured=[table.measured[place] for place in usable] if table.measured else [],
        duplicates=[replace(each, rows=tuple(map(new_places.__getitem__, each.rows))) for each in known],
        skipped=sorted([*table.skipped, *unknown]),
    )


def condition_values(molecules: MoleculeFeatures) -> np.ndarray:
    """The conditions of molecules: float32 [M, C], or [M, 0] if they are unknown."""
    return np.zeros((len(molecules), 0), np.float32)
