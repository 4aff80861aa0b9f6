"""A trained table model as its report sees it, and the texts of its numbers and molecules."""

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw_plain
from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.domain import evenly
from graphormer_sepnorm.predict.training_rows import decimals_of
from graphormer_sepnorm.report.page import Picture
from graphormer_sepnorm.report.slopes import Slope, resampled_slope, slope_of
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import shown
from graphormer_sepnorm.table_model.evaluate import StackScores
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reliability import (
    USUAL_CONFIDENCE,
    ComparedMolecules,
    are_many,
    usual_confidence,
)
from graphormer_sepnorm.table_model.scores import columns_of, scores_of
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.tasks.censored import bound_scores, is_bounded

CUT = 0.5  # probability from which on a molecule is predicted as class 1
MOST_PAIRED = 2_000  # molecules that are compared pairwise


@dataclass(frozen=True)
class Reported:
    """The run that a report describes: the table model, what it was fitted to, and its table.

    ``test`` has the scores of what ``predict`` predicts and the ``result`` of ``report_table``; ``plain`` has the
    predictions [M, T] for the test molecules before calibration; ``looked`` compares these with the training molecules.
    """

    run: RunFolder
    fitted: FittedTable
    labels: Labels
    folds: Folds
    labelled: LabelledTable
    options: TableOptions
    test: StackScores
    plain: np.ndarray
    looked: ComparedMolecules

    @property
    def model(self) -> TableModel:
        return self.fitted.model

    @property
    def result(self) -> dict:
        return self.test.result

    @property
    def task(self) -> TaskConfig:
        return self.test.task

    @property
    def metric(self) -> str:
        """The name of the metric for users."""
        return METRICS[self.task.metric].title

    @property
    def is_regression(self) -> bool:
        return not TASKS[self.task.kind].predicts_probabilities

    @property
    def networks(self) -> list[RunFolder]:
        """The run folders of the networks in the table model."""
        return self.run.members() if "networks" in self.result["members"] else []

    @cached_property
    def learnt(self) -> list[LabelledRow]:
        """The rows of the training molecules: all but those for test."""
        return [row for row in self.labelled.rows if row.split != "test"]

    @cached_property
    def paired(self) -> list[LabelledRow]:
        """The rows of the training molecules that are compared pairwise."""
        return [self.learnt[place] for place in evenly(len(self.learnt), MOST_PAIRED)]

    @cached_property
    def paired_keys(self) -> list[str]:
        """The keys of the molecules of ``paired``."""
        known = zip(self.labelled.rows, self.labelled.structures.keys, strict=True)
        keys = [key for row, key in known if row.split != "test"]
        return [keys[place] for place in evenly(len(keys), MOST_PAIRED)]

    @cached_property
    def paired_mols(self) -> list[Chem.Mol]:
        """The molecules of ``paired``."""
        return [read_smiles(row.smiles) for row in self.paired]

    @property
    def count_fitted(self) -> int:
        """The number of rows that a member was fitted to; networks without folds leave the validation rows out."""
        if self.folds.predict_all or set(self.model.members) != {"networks"}:
            return len(self.learnt)
        return sum(row.split == "train" for row in self.learnt)

    @property
    def count_scored(self) -> int:
        """The number of test rows with an exact label."""
        return int((~np.isnan(self.test.y)).any(axis=1).sum())

    @cached_property
    def tested(self) -> list[LabelledRow]:
        """The rows of the test molecules."""
        return self.labelled.of_split("test")

    def title_of(self, target: str) -> str:
        """The name of a target in the result, for users: several classes have that of their column."""
        return self.options.targets[0] if TASKS[self.task.kind].adds_up else target

    def is_logarithm(self, target: str) -> bool:
        """Whether a target is modelled by the logarithm of the values in the table."""
        return bool(dict(zip(self.task.targets, self.task.scales, strict=False)).get(target))

    def name_of(self, number: int) -> str:
        """The name of a row of the table: its id, or its number if the table has no ids."""
        return self.labelled.names.get(number) or f"row {number}"

    def classes_of(self, target: str) -> tuple[str, str]:
        """The names of the classes 0 and 1 of a target; of one of several classes, "0" and "1"."""
        if TASKS[self.task.kind].adds_up:
            return "0", "1"
        zero, one = self.task.classes[self.task.targets.index(target)]
        return zero, one

    def labelled_pairs(self, place: int, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The known test labels of a target and the predictions for them, of predictions [M, T] for all."""
        y = self.test.y[:, place]
        known = ~np.isnan(y)
        return y[known], predictions[known, place]

    @cached_property
    def slopes(self) -> list[tuple[str, Slope | None, float]]:
        """Each target of a regression, the slope of measured against predicted values out of fold, and the reverse.

        Without targets with many bounds: their exact labels have another slope than all labels.
        """
        if not self.is_regression:
            return []
        rows, found = self.folds.predicted, []
        values = self.fitted.out_of_fold.values[rows]
        for target, y, predicted in zip(self.task.targets, self.labels.y[rows].T, values.T, strict=True):
            if self.has_many_bounds(target):
                continue
            known = np.isfinite(y) & np.isfinite(predicted)
            y, predicted = y[known], predicted[known]
            found.append((target, resampled_slope(predicted, y), slope_of(y, predicted)))
        return found

    @cached_property
    def test_slopes(self) -> list[tuple[str, Slope]]:
        """Each target of ``slopes`` with enough test labels, and the slope of these against their predictions."""
        found = []
        for target, *_ in self.slopes:
            y, predicted = self.labelled_pairs(self.task.targets.index(target), self.test.prediction)
            if (slope := resampled_slope(predicted.astype(np.float64), y)) is not None:
                found.append((target, slope))
        return found

    def has_many_bounds(self, target: str) -> bool:
        """Whether ``are_many`` of the training labels of a target are bounds."""
        if self.labels.bounds is None:
            return False
        place = self.task.targets.index(target)
        y, bounds = self.labels.y[:, place], self.labels.bounds[:, place]
        return are_many(int(is_bounded(y, bounds).sum()), int(np.isfinite(y).sum()))

    def out_of_fold(self, target: str) -> tuple[dict[str, float | None], str]:
        """The scores of a target on the training labels that a fold predicted, and these labels in words.

        If some of these labels are censored, their ``BoundScores`` are among the scores.
        """
        rows, columns = self.folds.predicted, columns_of(self.task)[target]
        y, values = (each[rows, columns] for each in (self.labels.y, self.fitted.out_of_fold.values))
        known = ~np.isnan(y).all(axis=1)
        where = line("shared.where", labels=int(known.sum()), is_training=self.folds.predict_all)
        scores = scores_of(self.task, y[known], values[known])
        if self.labels.bounds is not None:
            bounded = bound_scores(y[:, 0], self.labels.bounds[rows, columns][:, 0], values[:, 0])
            scores |= asdict(bounded) if bounded else {}
        return scores, where

    def measured(self, value: float, place: int) -> str:
        """A label of a target as text: with the decimals of the labels, or the name of its class."""
        if np.isnan(value):
            return "not measured"
        if self.is_regression:
            return self.rounded(value, place)
        return self.classes_of(self.task.targets[place])[round(value)]

    def label_text(self, row: LabelledRow, place: int) -> str:
        """The label of a row as text, exact or censored."""
        if np.isnan(row.labels[place]) and place in row.bounds:
            return self.bound(row.bounds[place], place)
        return self.measured(row.labels[place], place)

    def label_of(self, row: LabelledRow, place: int) -> str:
        """As ``label_text``, with the number of rows of which an exact label is the mean."""
        text, several = self.label_text(row, place), self.replicates.get((row.number, row.split), [])
        if np.isnan(row.labels[place]):
            return text
        count = sum(not np.isnan(each.labels[place]) for each in several)
        return f"{text} (mean of {count} rows)" if count > 1 else text

    @cached_property
    def replicates(self) -> dict[tuple[int, str], list[LabelledRow]]:
        """The rows that were averaged to one, by the number and the split of the first."""
        found = {}
        for duplicate in self.labelled.duplicates if self.labelled.measured else ():
            rows = [self.labelled.measured[place] for place in duplicate.rows]
            for split in {row.split for row in rows}:
                same = [row for row in rows if row.split == split]
                found[same[0].number, split] = same
        return found

    def bound(self, text: str, place: int) -> str:
        """A censored label of a target with the decimals of the labels, and with more if its bound needs more."""
        bound = float(text[1:])
        return text[0] + shown(bound, max(self.decimals[place], decimals_of(np.array([bound]))))

    def predicted(self, value: float, place: int) -> str:
        """A prediction of a target as text; a probability with the name of the class."""
        if self.is_regression:
            return self.rounded(value, place)
        if TASKS[self.task.kind].adds_up:
            return f"probability {self.rounded(value, place)}"
        names = self.classes_of(self.task.targets[place])
        return f"{names[int(value >= CUT)]} (probability of {names[1]}: {self.rounded(value, place)})"

    def interval(self, row: int, place: int) -> str | None:
        """The interval of a test molecule at ``confidence`` as text; None without intervals."""
        if self.interval_ends is None:
            return None
        low, high = (ends[row, place] for ends in self.interval_ends)
        return f"{self.rounded(low, place)} to {self.rounded(high, place)}"

    def class_set(self, row: int, group: int) -> str | None:
        """The classes in a set of a test molecule, at the usual confidence; group: target, or 0 for several classes."""
        return self.class_sets[group][row] if self.class_sets else None

    @cached_property
    def class_sets(self) -> list[list[str]]:
        """The sets of the test molecules by target, as texts; empty without sets."""
        assert self.model.trust is not None
        sets = self.model.trust.class_sets
        if not sets:
            return []
        given = self.test.prediction, float(USUAL_CONFIDENCE)
        return [sets.texts(group, *given, names) for group, names in enumerate(self.task.classes)]

    @property
    def interval_name(self) -> str:
        """The name of the intervals at ``confidence``."""
        return f"{100 * float(self.confidence or 0):.0f} % interval"

    def rounded(self, value: float, place: int) -> str:
        """A value of a target with the ``decimals`` of the target."""
        return shown(float(value), self.decimals[place])

    def difference(self, value: float, other: float, place: int) -> str:
        """The distance between two values of a target as ``rounded`` shows them."""
        decimals = self.decimals[place]
        return self.rounded(abs(round(float(value), decimals) - round(float(other), decimals)), place)

    @cached_property
    def decimals(self) -> list[int]:
        """The decimals of the predictions of each target: those of its labels, or of probabilities."""
        if not self.is_regression:
            return [PROBABILITY_DECIMALS] * len(self.task.targets)
        assert self.model.trust is not None and self.model.trust.rows is not None
        return self.model.trust.rows.decimals

    @property
    def confidence(self) -> str | None:
        """As ``usual_confidence``."""
        return usual_confidence(self.result["trust"])

    @cached_property
    def interval_ends(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The ends of the intervals of the test molecules at ``confidence``: [M, T] each; None without intervals."""
        assert self.model.trust is not None
        if self.confidence is None or self.model.trust.intervals is None:
            return None
        prediction, spread, limits = self.test.prediction, self.test.spread, self.task.limits
        return self.model.trust.intervals.ends(float(self.confidence), prediction, spread, limits)


def plain_picture(smiles: str) -> Picture | None:
    """The structure of a molecule; None if it cannot be drawn."""
    try:
        return Picture(draw_plain(smiles), f"structure of {smiles}")
    except InputError:
        return None


def constant_words(task: TaskConfig) -> str:
    """The name of the prediction without a model, which is the mean training label for all molecules."""
    return "constant prediction" if TASKS[task.kind].predicts_probabilities else "mean training label"


def frequent_class(page: Reported, target: str) -> tuple[int, str]:
    """The number and the name of the most frequent class of a target in training."""
    means = np.nanmean(page.labels.y[:, columns_of(page.task)[target]], axis=0)
    if TASKS[page.task.kind].adds_up:
        place, names = int(means.argmax()), page.options.classes
    else:
        place, names = int(means[0] >= CUT), page.classes_of(target)
    return place, names[place]
