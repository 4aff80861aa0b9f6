"""Features whose distributions are made normal: by their ranks among the molecules that are learnt from.

As scikit-learn's QuantileTransformer, with two differences: many molecules with the least value of all, such as 0, have
the score in their middle, not the least one; and what was learnt is two arrays, without an import of seconds.

Axis letters: M molecules, D features, Q quantiles.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

MOST_QUANTILES = 1000
LARGEST = 3.0  # of a score


@dataclass(frozen=True)
class NormalScores:
    """From features to scores.

    Attributes:
        columns: int64 [C], the features that vary.
        quantiles: float64 [Q, C], of these, evenly spaced from the least to the largest value.
    """

    columns: np.ndarray
    quantiles: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> "NormalScores":
        """Learns from features [M, D]; a missing one, NaN, does not count."""
        known = ~np.isnan(features)
        least = np.where(known, features, np.inf).min(axis=0, initial=np.inf)
        largest = np.where(known, features, -np.inf).max(axis=0, initial=-np.inf)
        columns = np.flatnonzero(largest > least)
        levels = np.linspace(0, 1, max(2, min(MOST_QUANTILES, len(features))))
        found = [np.quantile(column[~np.isnan(column)], levels) for column in features[:, columns].astype(np.float64).T]
        found = [values.astype(np.float32) for values in found]  # an error of rounding would part equal values
        return cls(
            columns, np.maximum.accumulate(np.reshape(found, (len(columns), len(levels))).T.astype(np.float64), axis=0)
        )

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scores from -3 to 3 of features [M, D]: float32 [M, C]; 0 for a missing one, ties in the middle."""
        levels = np.linspace(0, 1, len(self.quantiles))
        scores = np.zeros((len(features), len(self.columns)), np.float32)
        for place, (column, values) in enumerate(zip(self.columns, self.quantiles.T, strict=True)):
            asked = features[:, column].astype(np.float64)
            level = 0.5 * (np.interp(asked, values, levels) + 1 - np.interp(-asked, -values[::-1], levels))
            scores[:, place] = np.nan_to_num(ndtri(level).clip(-LARGEST, LARGEST))
        return scores

    def fits(self, width: int) -> bool:
        """Whether these are scores of features [M, width]."""
        columns, quantiles = self.columns, self.quantiles
        return (
            len(quantiles) >= 2
            and quantiles.shape[1] == len(columns)
            and bool((columns >= 0).all() and (columns < width).all())
            and bool((np.diff(quantiles, axis=0) >= 0).all())
        )
