"""A trained table model as its report sees it, and the texts of its numbers and molecules."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.pictures import draw_plain
from graphormer_sepnorm.output.column import PROBABILITY_DECIMALS
from graphormer_sepnorm.predict.training_rows import TrainingRows, decimals_of
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.report.page import Picture
from graphormer_sepnorm.report.words import line, words
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import percent, shown
from graphormer_sepnorm.runs.plots import MAX_PANELS
from graphormer_sepnorm.table_model import scores as measures
from graphormer_sepnorm.table_model.evaluate import StackScores
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reliability import USUAL_CONFIDENCE, ComparedMolecules, usual_confidence
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.tasks.censored import bound_scores

CUT = 0.5  # probability from which on a molecule is predicted as class 1


@dataclass(frozen=True)
class Trained:
    """A fitted table model, its run folder, what it was fitted to, and its table as it was read."""

    run: RunFolder
    fitted: FittedTable
    molecules: MoleculeFeatures
    labels: Labels
    folds: Folds
    labelled: LabelledTable
    options: TableOptions


@dataclass(frozen=True)
class Reported(Trained):
    """A trained model with its scores on test molecules."""

    test: StackScores
    looked: ComparedMolecules
    results: Mapping[str, dict] = field(default_factory=dict)  # of folds by name, if all their rows are the test rows

    def words(self, name: str, /, **facts: object) -> tuple[str, ...]:
        """The paragraphs of a macro that describes this."""
        return words(name, page=self, **facts)

    def line(self, name: str, /, **facts: object) -> str:
        """The only paragraph of a macro that describes this."""
        return line(name, page=self, **facts)

    @property
    def model(self) -> TableModel:
        return self.fitted.model

    @property
    def trust(self) -> Trust:
        assert self.model.trust is not None
        return self.model.trust

    @property
    def result(self) -> dict:
        return self.test.result

    @property
    def task(self) -> TaskConfig:
        return self.test.task

    @property
    def metric(self) -> str:
        return METRICS[self.task.metric].title

    @property
    def test_word(self) -> str:
        return measures.test_word(self.result)

    @property
    def panels(self) -> tuple[str, ...]:
        return self.task.targets[:MAX_PANELS]

    @property
    def scored(self) -> dict[str, dict]:
        """The ``Predicted.by_target`` of the targets that are drawn; several classes are one target."""
        return dict(list(self.result["targets"].items())[:MAX_PANELS])

    @property
    def is_regression(self) -> bool:
        return not TASKS[self.task.kind].predicts_probabilities

    @property
    def adds_up(self) -> bool:
        """Whether the targets are the classes of one column."""
        return TASKS[self.task.kind].adds_up

    @cached_property
    def learnt(self) -> list[LabelledRow]:
        return [row for row in self.labelled.rows if row.split != "test"]

    @cached_property
    def tested(self) -> list[LabelledRow]:
        return self.labelled.rows if self.results else self.labelled.of_split("test")

    def labels_of(self, facts: dict) -> str:
        """The number of scored labels in ``Predicted.by_target``, in words."""
        return measures.labels_words(facts, measures.label_word(self.result))

    def few(self, *targets: dict) -> str | None:
        """The labels of that target with the fewest, of all or of these ``Predicted.by_target``, if they are few."""
        least = min(targets or self.result["targets"].values(), key=measures.informative)
        return self.labels_of(least) if measures.informative(least) < measures.FEW_TESTED else None

    def networks(self) -> list[RunFolder]:
        return self.run.members() if "networks" in self.result.get("members", ()) else []

    def title_of(self, target: str) -> str:
        """The name of a target in the result, for users: several classes have that of their column."""
        return self.options.targets[0] if self.adds_up else target

    @property
    def titles(self) -> list[str]:
        return list(map(self.title_of, self.result["targets"]))

    def tested_name(self, row: int) -> str:
        """The ``name_of`` a test molecule, with the fold in which it was tested."""
        tested = self.tested[row]
        return self.name_of(tested.number) + (f", {tested.split}" if tested.split in self.results else "")

    def name_of(self, number: int) -> str:
        """The id of a row of the table, or its number if the table has no ids."""
        return self.labelled.names.get(number) or f"row {number}"

    def classes_of(self, place: int) -> tuple[str, ...]:
        """The names of the classes 0 and 1 of a target; of one of several classes, "0" and "1"."""
        return ("0", "1") if self.adds_up else self.task.classes[place]

    def labelled_pairs(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """The known test labels of a target, and the predictions for them."""
        labelled = ~np.isnan(self.test.y[:, place])
        return self.test.y[labelled, place], self.test.prediction[labelled, place]

    def most_labelled(self, place: int) -> tuple[np.ndarray, np.ndarray, str]:
        """The ``labelled_pairs`` of a target of two classes, or those out of fold if they have more of the rarer class.

        The third part says which, as ``out_of_fold``; "" for those of the test molecules.
        """
        rows, pairs = self.folds.predicted, self.labelled_pairs(place)
        y = self.labels.y[rows, place]
        known = ~np.isnan(y)
        if self.results or min(y[known].sum(), (1 - y[known]).sum()) <= min(pairs[0].sum(), (1 - pairs[0]).sum()):
            return *pairs, ""
        values = self.model.final(self.fitted.out_of_fold.values[rows])
        return y[known], values[known, place], self.out_of_fold(self.task.targets[place])[1]

    def out_of_fold(self, target: str) -> tuple[dict[str, float | None], str]:
        """Scores, ``BoundScores`` too, on the training labels of a target that a fold predicted; these in words.

        There are none where all rows are the test rows.
        """
        if self.results:
            return {}, ""
        rows, columns = self.folds.predicted, measures.columns_of(self.task)[target]
        y, values = (each[rows, columns] for each in (self.labels.y, self.fitted.out_of_fold.values))
        labelled = ~np.isnan(y).all(axis=1)
        rarer = None if self.is_regression else measures.rarer_class(self.task, columns, y[labelled])
        where = line("shared.where", labels=int(labelled.sum()), rarer=rarer, is_training=self.folds.predict_all)
        scores = measures.scores_of(self.task, y[labelled], values[labelled])
        if self.labels.bounds is not None:
            bounded = bound_scores(y[:, 0], self.labels.bounds[rows, columns][:, 0], values[:, 0])
            scores |= asdict(bounded) if bounded else {}
        return scores, where

    def frequent_class(self, target: str) -> tuple[int, str]:
        """The number and the name of the most frequent class of a target in training."""
        means = np.nanmean(self.labels.y[:, measures.columns_of(self.task)[target]], axis=0)
        place = int(means.argmax() if self.adds_up else means[0] >= CUT)
        names = self.options.classes if self.adds_up else self.classes_of(self.task.targets.index(target))
        return place, names[place]

    def label_text(self, row: LabelledRow, place: int) -> str:
        """The label of a row as text, exact or censored: with the decimals of the labels, or the name of its class."""
        value = row.labels[place]
        if not np.isnan(value):
            return self.rounded(value, place) if self.is_regression else self.classes_of(place)[round(value)]
        return self.bound(row.bounds[place], place) if place in row.bounds else "not measured"

    def label_of(self, row: LabelledRow, place: int) -> str:
        """As ``label_text``, with the number of rows of which an exact label is the mean."""
        text, several = self.label_text(row, place), self.replicates.get((row.number, row.split), [])
        count = 0 if np.isnan(row.labels[place]) else sum(not np.isnan(each.labels[place]) for each in several)
        return f"{text} (mean of {count} rows)" if count > 1 else text

    @cached_property
    def replicates(self) -> dict[tuple[int, str], list[LabelledRow]]:
        """The rows that were averaged to one, by the number and the split of the first."""
        measured, split = self.labelled.measured, attrgetter("split")
        duplicates = ([measured[place] for place in each.rows] for each in self.labelled.duplicates if measured)
        groups = [list(same) for rows in duplicates for _, same in groupby(sorted(rows, key=split), split)]
        return {(same[0].number, same[0].split): same for same in groups}

    def bound(self, text: str, place: int) -> str:
        """A censored label of a target with the decimals of the labels, and with more if its bound needs more."""
        bound = float(text[1:])
        return text[0] + shown(bound, max(self.decimals[place], decimals_of(np.array([bound]))))

    def predicted(self, value: float, place: int) -> str:
        """A prediction of a target as text; a probability with the name of the class."""
        if self.is_regression:
            return self.rounded(value, place)
        names = self.classes_of(place)
        return f"{names[int(value >= CUT)]} (probability of {names[1]}: {self.rounded(value, place)})"

    def interval(self, row: int, place: int) -> str | None:
        """The interval of a test molecule at ``confidence`` as text; None without intervals."""
        ends = self.interval_ends[row, place]
        return None if np.isnan(ends).any() else " to ".join(self.rounded(end, place) for end in ends)

    @property
    def interval_name(self) -> str:
        return f"{percent(self.level)} interval"

    @cached_property
    def class_sets(self) -> list[list[str]]:
        """The sets of the test molecules by target as texts, at the usual confidence; empty without sets."""
        if self.results or (sets := self.trust.class_sets) is None:
            return []
        prediction = self.test.prediction
        return [sets.texts(group, prediction, self.level, names) for group, names in enumerate(self.task.classes)]

    def rounded(self, value: float, place: int) -> str:
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
        rows = None if self.model.trust is None else self.model.trust.rows
        return (rows or TrainingRows.of(self.labels.y)).decimals

    @property
    def confidence(self) -> str | None:
        return usual_confidence(self.result["trust"])

    @property
    def level(self) -> float:
        """The confidence level of intervals, or of sets of classes."""
        return float(self.confidence or USUAL_CONFIDENCE)

    def shares(self, name: str) -> dict[str, float | None]:
        """A part of the trust at the confidence level, such as "coverage", by target; empty if there is none."""
        return self.result["trust"].get(name, {}).get(self.confidence or USUAL_CONFIDENCE, {})

    def mean_share(self, name: str) -> float:
        """The mean of ``shares`` over the labels of all targets that have one."""
        known = {target: share for target, share in self.shares(name).items() if share is not None}
        return float(np.average([*known.values()], weights=[self.result["targets"][target]["n"] for target in known]))

    @cached_property
    def interval_ends(self) -> np.ndarray:
        """The ends of the intervals of the test molecules at ``confidence``: [M, T, 2]; NaN without intervals."""
        prediction = self.test.prediction
        if self.results or self.confidence is None or self.trust.intervals is None:
            return np.full((*prediction.shape, 2), np.nan)
        ends = self.trust.intervals.ends(self.level, prediction, self.test.spread, self.task.limits)
        return np.stack(ends, axis=-1)


def plain_picture(smiles: str) -> Picture | None:
    """The structure of a molecule; None if it cannot be drawn."""
    try:
        return Picture(draw_plain(smiles), f"structure of {smiles}")
    except InputError:
        return None


def worst_first(errors: np.ndarray) -> np.ndarray:
    """The places of errors [M], the largest first, unknown ones last."""
    return np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")
