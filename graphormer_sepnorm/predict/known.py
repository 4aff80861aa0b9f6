"""The knowledge of a model about its errors and training molecules; M molecules, T targets."""

from numbers import Real

import numpy as np

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.class_sets import ClassSets
from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.tasks import TASKS


def known_trust(model: PredictingModel) -> Trust:
    """The knowledge of a model about its errors and training molecules; raises InputError if it knows nothing."""
    if model.trust is None:
        raise InputError(
            "the model has no information on its training molecules, so it has no intervals and compares nothing with "
            "them: name adme or the run folder of a model that was trained on a table"
        )
    return model.trust


def check_confidence(name: str, value: object) -> None:
    """Raises InputError for a confidence level, in the parameter of this name, that is no number."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise InputError(f"{name}: give a number between 0 and 1, such as 0.9, not {value!r}")


def known_intervals(model: PredictingModel) -> Intervals:
    """The intervals of a model; raises InputError if it has none."""
    if TASKS[model.kind].predicts_probabilities:
        raise InputError("this model predicts classes, which have prediction sets in place of intervals")
    intervals = known_trust(model).intervals
    if intervals is None:
        raise InputError("the model has no intervals, because a target had no labels in its validation split")
    return intervals


def interval_ends(
    model: PredictingModel, confidence: float, values: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of intervals around predictions, within the limits of the targets: float64 [M, T] each."""
    return known_intervals(model).ends(confidence, values, spread, model.limits)


def known_sets(model: PredictingModel) -> ClassSets:
    """The prediction sets of a classification; raises InputError if it has none."""
    sets = known_trust(model).class_sets
    if sets is None:
        raise InputError("the model is of an earlier version without prediction sets: train it again")
    return sets
