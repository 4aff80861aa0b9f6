"""Transformation of features to a normal distribution by their ranks; M molecules, D features, Q quantiles.

Unlike scikit-learn's QuantileTransformer, ties at the smallest value, such as 0, get the score of their middle rank."""

from dataclasses import dataclass

import numpy as np
import torch

MOST_QUANTILES = 1000
LARGEST = 3.0  # largest score


@dataclass(frozen=True)
class NormalScores:
    columns: np.ndarray  # int64 [C], indices of the features that vary
    quantiles: np.ndarray  # float64 [Q, C], their quantiles, evenly spaced from the smallest to the largest value

    @classmethod
    def of(cls, features: np.ndarray) -> "NormalScores":
        """Fits to features [M, D]; missing values (NaN) are ignored."""
        known = ~np.isnan(features)
        least = np.where(known, features, np.inf).min(axis=0, initial=np.inf)
        largest = np.where(known, features, -np.inf).max(axis=0, initial=-np.inf)
        columns = np.flatnonzero(largest > least)
        levels = np.linspace(0, 1, max(2, min(MOST_QUANTILES, len(features))))
        found = [np.quantile(column[~np.isnan(column)], levels) for column in features[:, columns].astype(np.float64).T]
        found = [values.astype(np.float32) for values in found]  # rounding errors would separate equal values
        return cls(
            columns, np.maximum.accumulate(np.reshape(found, (len(columns), len(levels))).T.astype(np.float64), axis=0)
        )

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scores of features [M, D] from -3 to 3: float32 [M, C]; 0 for missing values, the middle rank for ties."""
        levels = np.linspace(0, 1, len(self.quantiles))
        scores = np.zeros((len(features), len(self.columns)), np.float32)
        for place, (column, values) in enumerate(zip(self.columns, self.quantiles.T, strict=True)):
            asked = features[:, column].astype(np.float64)
            level = 0.5 * (np.interp(asked, values, levels) + 1 - np.interp(-asked, -values[::-1], levels))
            scores[:, place] = np.nan_to_num(normal_quantiles(level).clip(-LARGEST, LARGEST))
        return scores

    def fits(self, width: int) -> bool:
        columns, quantiles = self.columns, self.quantiles
        return (
            len(quantiles) >= 2
            and quantiles.shape[1] == len(columns)
            and bool((columns >= 0).all() and (columns < width).all())
            and bool((np.diff(quantiles, axis=0) >= 0).all())
        )


def normal_quantiles(levels: np.ndarray) -> np.ndarray:
    """Quantiles of the standard normal distribution at float64 levels from 0 to 1."""
    return torch.special.ndtri(torch.from_numpy(levels)).numpy()
