"""Scores of each target with intervals, compared with the forest and the mean label.

Axis letters: M test molecules, C columns of a target, P predictions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import scipy

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.tasks.censored import bound_scores, top_scores
from graphormer_sepnorm.tasks.metrics import Metric

SIGNS = ("<", ">")  # of bounds
RESAMPLES = 1_000
MOST_DRAWN = 10_000  # labels of a resample; of more labels, the interval is somewhat too wide
PERCENTILES = (2.5, 97.5)  # of a 95 % interval
MEAN, STACK = "mean", "stack"
OUT_OF_FOLD = "out of fold"  # the split of the scores of a model that has no test rows
FEW_TESTED = 50  # labels below which a score is uncertain
LEAST_RARE = 10  # labels of the rarer class below which a classification is not judged
RIVALS = {"against_forest": "forest", "against_mean": MEAN}


@dataclass(frozen=True)
class Predicted:
    task: TaskConfig
    y: np.ndarray  # [M, T] labels, NaN where missing
    by_name: dict[str, np.ndarray]  # predictions [M, T] of the table model (``STACK``) and each member; NaN: none
    means: np.ndarray  # [T], mean labels of the training molecules
    bounds: np.ndarray | None = None  # [M, T, 2] of censored labels

    @classmethod
    def of_lines(cls, task: TaskConfig, lines: Sequence[Sequence[str]]) -> "Predicted":
        """The labels, their bounds and the predictions in lines of ``predictions.csv``, without its header."""
        end, targets = 3 + len(task.targets), len(task.targets)
        exact = [[float(text) if text and text[0] not in SIGNS else np.nan for text in line[3:end]] for line in lines]
        bounds = [[bounds_of(text if text[:1] in SIGNS else "") for text in line[3:end]] for line in lines]
        prediction = np.reshape([list(map(float, line[end : end + targets])) for line in lines], (-1, targets))
        y, ends = np.reshape(exact, (-1, targets)), np.reshape(bounds, (-1, targets, 2))
        return cls(task, y, {STACK: prediction}, np.zeros(targets), ends)

    @cached_property
    def left_out(self) -> dict[str, str]:
        """The targets without a score, or with too few labels if there are enough of others, and the reasons."""
        facts = {name: facts_of_labels(self.task, columns, self.y) for name, columns in columns_of(self.task).items()}
        few = {name: each["warning"] for name, each in facts.items() if "warning" in each}
        return make_task(self.task).left_out(self.y) | (few if len(few) < len(facts) else {})

    @property
    def judged(self) -> np.ndarray:
        """The labels without those of targets that are ``left_out``, each of which has a score of its own."""
        unjudged = [name in self.left_out for name in self.task.targets]
        return self.y if TASKS[self.task.kind].adds_up else np.where(unjudged, np.nan, self.y)

    def by_target(self) -> dict[str, dict]:
        return {name: scores_of_target(self, columns) for name, columns in columns_of(self.task).items()}

    @property
    def labels(self) -> np.ndarray:
        """The labels, NaN where they are not exact, and their bounds: float64 [M, T, 3]."""
        bounds = np.broadcast_to([-np.inf, np.inf], (*self.y.shape, 2)) if self.bounds is None else self.bounds
        return np.dstack([self.y, bounds])

    def column(self, columns: slice, name: str = STACK) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels [M], bounds [M, 2] and a prediction [M] of a target with one column."""
        labels = self.labels[:, columns][:, 0]
        prediction = self.by_name[name] if name in self.by_name else np.broadcast_to(self.means, self.y.shape)
        return labels[:, 0], labels[:, 1:], prediction[:, columns][:, 0]

    def with_bounds(self, columns: slice) -> dict[str, dict[str, float | None]]:
        """The ``BoundScores`` of each prediction and of the mean label; empty without bounds."""
        if self.bounds is None:
            return {}
        found = {}
        for name in (*self.by_name, MEAN):
            y, bounds, prediction = self.column(columns, name)
            if scores := bound_scores(y, bounds, np.where(np.isnan(prediction), self.means[columns][0], prediction)):
                found[name] = {part: or_none(value) for part, value in asdict(scores).items()}
        return found

    def tops(self, columns: slice) -> dict[str, dict]:
        """The ``TopScores`` of a target of a regression, ``highest`` and ``lowest``, where there are enough labels."""
        if TASKS[self.task.kind].predicts_probabilities:
            return {}
        y, ends, prediction = self.column(columns)
        both = {"highest": top_scores(y, ends, prediction), "lowest": top_scores(-y, -ends[:, ::-1], -prediction)}
        return {name: asdict(scores) for name, scores in both.items() if scores}

    def of(self, columns: slice) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Labels and predictions [M, C] of the molecules with a label; the mean label replaces a missing prediction."""
        rows = ~np.isnan(self.y[:, columns]).all(axis=1)
        y, means = self.y[rows, columns], self.means[columns]
        by_name = {name: each[rows, columns] for name, each in self.by_name.items()}
        by_name[MEAN] = np.broadcast_to(means, y.shape)
        return y, {name: np.where(np.isnan(each), means, each) for name, each in by_name.items()}


def top_words(tops: dict[str, dict]) -> list[str]:
    found = "of the {n} predicted {side}, {found} are among the {best} {side}; {chance:.1f} by chance"
    return [found.format(side=side, **top) for side, top in tops.items()]


def columns_of(task: TaskConfig) -> dict[str, slice]:
    if TASKS[task.kind].adds_up:
        return {", ".join(task.targets): slice(None)}
    return {name: slice(place, place + 1) for place, name in enumerate(task.targets)}


def scores_of_target(predicted: Predicted, columns: slice) -> dict:
    y, by_name = predicted.of(columns)
    metric, scores = METRICS[predicted.task.metric], facts_of_labels(predicted.task, columns, predicted.y)
    scores["scores"] = {name: scores_of(predicted.task, y, each) for name, each in by_name.items()}
    more = {"bounds": predicted.with_bounds(columns), "top": predicted.tops(columns)}
    scores |= {name: facts for name, facts in more.items() if facts}
    if len(y) < 2:
        return scores
    drawn = dict(zip(by_name, resampled(predicted.task.metric, y, list(by_name.values())).T, strict=True))
    scores["interval"] = {name: interval(values) for name, values in drawn.items()}
    ranking, final = next(name for name in TASKS[predicted.task.kind].reported if name in OF_DRAWS), by_name[STACK]
    ours = drawn[STACK] if ranking == predicted.task.metric else resampled(ranking, y, [final])[:, 0]
    value = or_none(METRICS[ranking].or_nan(y, final))
    scores["ranking"] = {"metric": ranking, "value": value, "interval": interval(ours)}
    for against, rival in RIVALS.items():
        if rival in by_name:
            pair = np.stack([drawn[STACK], drawn[rival]], axis=1)
            scores[against] = paired_difference(metric, y, final, by_name[rival], pair)
    return scores


def facts_of_labels(task: TaskConfig, columns: slice, y: np.ndarray) -> dict:
    """The number of the labels of a target among those of all [M, T], and why they are too few to judge, if so."""
    y = y[~np.isnan(y[:, columns]).all(axis=1), columns]
    of_classes = TASKS[task.kind].predicts_probabilities
    facts = {"n": len(y)} | ({"rarer": rarer_class(task, columns, y)} if of_classes else {})
    return facts | ({"warning": warning} if (warning := reason_not_to_judge(facts)) else {})


def rarer_class(task: TaskConfig, columns: slice, y: np.ndarray) -> dict[str, str | int]:
    """The rarer one of two classes, or of several all except the most frequent, and the number of its labels [M, C]."""
    ones = y.sum(axis=0)
    counts = ones if TASKS[task.kind].adds_up else np.array([len(y) - ones[0], ones[0]])
    names, place = task.classes[columns.start or 0], int(counts.argmax())
    return {"class": names[1 - place] if len(names) == 2 else f"not {names[place]}", "n": len(y) - int(counts[place])}


def reason_not_to_judge(facts: dict) -> str:
    """Why the scored labels of a target, with these ``Predicted.by_target``, say nothing; empty if they do."""
    labels, rare = facts["n"], facts.get("rarer", {}).get("n", LEAST_RARE)
    if labels < 2:
        return "only 1 scored molecule has a label: its error is not a score" if labels else "no labels to score"
    if rare >= LEAST_RARE:
        return ""
    count = f"{rare or 'none'} of {labels:,} scored labels {'is' if rare < 2 else 'are'} {facts['rarer']['class']}"
    return f"{count}: {'too few to judge' if rare else 'no ROC-AUC'}"


def informative(facts: dict) -> int:
    """The number of labels that a score rests on: of classes, as many as there would be of two equal classes."""
    return min(facts["n"], 2 * facts["rarer"]["n"]) if "rarer" in facts else facts["n"]


def test_word(result: dict) -> str:
    """The word before the molecules of a result; they are not called by a word if they were predicted out of fold."""
    return "" if result.get("split") == OUT_OF_FOLD else "test "


def label_word(result: dict) -> str:
    return f"{test_word(result) or 'out-of-fold '}label"


def labels_words(facts: dict, what: str) -> str:
    """The number of labels in ``Predicted.by_target``, and that of the rarer class."""
    rarer = f", {facts['rarer']['n']:,} of them {facts['rarer']['class']}" if "rarer" in facts else ""
    return counted(facts["n"], what) + rarer


def scores_of(task: TaskConfig, y: np.ndarray, prediction: np.ndarray) -> dict[str, float | None]:
    """The reported metrics and that of the task, of labels and a prediction [M, C], without NaN; None: undefined."""
    y, prediction = np.where(np.isnan(prediction), np.nan, y), np.nan_to_num(prediction)
    scores = TASKS[task.kind].scores(y, prediction)
    return {**scores, task.metric: or_none(METRICS[task.metric].or_nan(y, prediction))}


def paired_difference(metric: Metric, y: np.ndarray, ours: np.ndarray, theirs: np.ndarray, drawn: np.ndarray) -> dict:
    """A metric minus that of another prediction, and its interval from scores ``drawn`` [RESAMPLES, 2]."""
    value = metric.or_nan(y, ours) - metric.or_nan(y, theirs)
    return {"difference": or_none(value), "interval": interval(drawn[:, 0] - drawn[:, 1])}


def resampled(name: str, y: np.ndarray, predictions: list[np.ndarray]) -> np.ndarray:
    """A metric of each prediction [M, C] on the same resamples of the molecules: [RESAMPLES, P]; NaN: undefined."""
    draws = draws_of(len(y))
    if name in OF_DRAWS:
        return np.stack([score_of_draws(OF_DRAWS[name], y, each, draws) for each in predictions], axis=1)
    return np.array([[METRICS[name].or_nan(y[rows], each[rows]) for each in predictions] for rows in draws])


def draws_of(count: int) -> np.ndarray:
    """The rows of bootstrap resamples: [RESAMPLES, count], or ``MOST_DRAWN`` in place of more."""
    return np.random.default_rng(0).integers(count, size=(RESAMPLES, min(count, MOST_DRAWN)))


def score_of_draws(of_rows: Callable, y: np.ndarray, prediction: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The mean score of columns [M, C] for draws of molecules [draws, M], as in ``METRICS``."""
    drawn = np.stack([of_rows(y[draws, column], prediction[draws, column]) for column in range(y.shape[1])])
    defined = (~np.isnan(drawn)).sum(axis=0)
    return np.where(defined > 0, np.nansum(drawn, axis=0) / np.maximum(defined, 1), np.nan)


def roc_auc_of_ranks(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The area under the ROC curve for each row of [draws, M]: [draws], NaN where all labels of a row are equal."""
    ones = y.sum(axis=1)
    above = (scipy.stats.rankdata(prediction, axis=1) * y).sum(axis=1) - ones * (ones + 1) / 2
    pairs = ones * (y.shape[1] - ones)
    return np.where(pairs > 0, above / np.maximum(pairs, 1), np.nan)


def correlation_of_ranks(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Spearman's correlation for each row of [draws, M]: [draws], NaN where all values of a row are equal."""
    y, prediction = (scipy.stats.rankdata(each, axis=1) - (each.shape[1] + 1) / 2 for each in (y, prediction))
    squares = (y**2).sum(axis=1) * (prediction**2).sum(axis=1)
    return np.where(squares > 0, (y * prediction).sum(axis=1) / np.sqrt(np.maximum(squares, 1e-9)), np.nan)


OF_DRAWS = {"rocauc": roc_auc_of_ranks, "spearman": correlation_of_ranks}  # quick ways to score many draws


def interval(values: np.ndarray) -> list[float] | None:
    defined = values[~np.isnan(values)]
    return np.percentile(defined, PERCENTILES).tolist() if len(defined) else None


def or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
