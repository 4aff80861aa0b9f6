"""How large the error of a prediction is expected to be: learnt from the errors out of fold.

Four indicators tell it: a constant, how members disagree, how far the training molecules are, and how wrong the
predictions of the nearest of these were. The width of an interval follows the expected error.

Axis letters: K members, M molecules, N training molecules, T targets, I indicators.
"""

from dataclasses import dataclass

import numpy as np

from graphormer_sepnorm.table_model.labels import Folds

SHARPNESS = 6  # power of a similarity by which the error of a training molecule counts
DEVIATION = np.sqrt(np.pi / 2)  # of normal errors, over their mean absolute value
INDICATORS = 4


@dataclass(frozen=True)
class Difficulty:
    """What the size of errors is told by.

    Attributes:
        coefficients: float64 [I, T], at least 0.
        errors: float64 [N, T], absolute errors out of fold of the training molecules; NaN where there is no label.
    """

    coefficients: np.ndarray
    errors: np.ndarray

    def __call__(self, disagreement: np.ndarray, similarity: np.ndarray) -> np.ndarray:
        """The expected standard deviation of the error: float64 [M, T].

        Args:
            disagreement: [M, T], as ``disagreement``.
            similarity: [M, N] to the training molecules; [M, 0] where it is not known.
        """
        found = indicators(disagreement, similarity, self.errors)
        return np.einsum("imt,it->mt", found, self.coefficients)


def fit_difficulty(
    error: np.ndarray, disagreement: np.ndarray, similarity: np.ndarray, numbers: np.ndarray
) -> Difficulty:
    """Learns how large errors are.

    Args:
        error: [M, T], labels less predictions out of fold; NaN where there is no label.
        disagreement: [M, T], of the members out of fold.
        similarity: [M, N], as ``of_other_folds``; [M, 0] where it is not known.
        numbers: int64 [N], the molecules among the M that others are compared with.
    """
    from scipy.optimize import nnls  # its import takes a while

    size = np.abs(error)
    found = indicators(disagreement, similarity, size[numbers])
    coefficients = np.zeros((INDICATORS, error.shape[1]))
    for target in range(error.shape[1]):
        rows = np.flatnonzero(~np.isnan(size[:, target]))
        if len(rows):
            coefficients[:, target] = DEVIATION * nnls(found[:, rows, target].T, size[rows, target])[0]
    return Difficulty(coefficients, size[numbers])


def of_other_folds(similarity: np.ndarray, folds: Folds, numbers: np.ndarray) -> np.ndarray:
    """Similarities [M, N] that are 0 within a fold, so that its molecules tell nothing of each other; [M, 0] as it is.

    Args:
        similarity: of training molecules to those of them with the ``numbers`` [N].
        folds: of the M.
    """
    if not similarity.shape[1]:
        return similarity
    return np.where(folds.numbers[:, None] == folds.numbers[numbers], 0, similarity)


def indicators(disagreement: np.ndarray, similarity: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """What the size of an error is told by: float64 [I, M, T]; without similarities the last two are 0."""
    found = np.zeros((INDICATORS, *disagreement.shape))
    found[0], found[1] = 1.0, np.nan_to_num(disagreement)
    if similarity.shape[1]:
        found[2] = 1 - similarity.max(axis=1)[:, None]
        near = similarity**SHARPNESS
        known = ~np.isnan(errors)
        found[3] = near @ np.nan_to_num(errors) / np.maximum(near @ known, 1e-12)
    return found


def disagreement(predictions: np.ndarray, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The weighted standard deviation of members [K, M, T] with weights [K, T] around their mean [M, T]: [M, T]."""
    squares = np.nan_to_num(predictions - mean) ** 2
    return np.sqrt((weights[:, None] * squares).sum(axis=0))
