"""Limits of values, such as percentages, that cannot be smaller or larger."""

from collections.abc import Sequence

import numpy as np


def limited(values: np.ndarray, limits: Sequence[tuple[float | None, float | None]]) -> np.ndarray:
    """Values [M, T] within the ``limits`` of a ``TaskConfig``, rounded to float32 as predictions are; NaN stays NaN."""
    if not limits:
        return values
    low = np.array([-np.inf if low is None else low for low, _ in limits], np.float32)
    high = np.array([np.inf if high is None else high for _, high in limits], np.float32)
    return np.clip(values, low, high)
