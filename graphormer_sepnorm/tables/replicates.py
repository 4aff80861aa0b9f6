"""Replicate measurements: averaging of labels, and the standard deviation of replicates. M rows, T targets."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.tables.rows import LabelledRow
from graphormer_sepnorm.tables.splits import rows_by_key


def averaged(rows: list[LabelledRow], keys: Sequence[Hashable]) -> tuple[list[LabelledRow], list[int]]:
    """Merges rows with the same key: means of their exact labels and weights, else the tightest bound.

    Also returns the place of the first row of each, whose number and time the merged row has.
    """
    groups = list(rows_by_key(keys).values())
    return [mean_row([rows[place] for place in places]) for places in groups], [places[0] for places in groups]


def mean_row(rows: list[LabelledRow]) -> LabelledRow:
    """The mean of the rows of one molecule; a single row is unchanged."""
    if len(rows) == 1:
        return rows[0]
    y, weights = np.array([row.labels for row in rows]), np.array([row.weight for row in rows])
    known = ~np.isnan(y) * (weights if weights.any() else np.ones(len(rows)))[:, None]
    totals = known.sum(axis=0)
    labels = np.where(totals > 0, (np.nan_to_num(y) * known).sum(axis=0) / np.where(totals > 0, totals, 1), np.nan)
    inexact = np.flatnonzero(np.isnan(labels)).tolist()
    texts = {place: [row.bounds[place] for row in rows if place in row.bounds] for place in inexact}
    bounds = {place: tightest(found) for place, found in texts.items() if found}
    return replace(rows[0], labels=labels.tolist(), bounds=bounds, weight=float(weights.mean()))


def tightest(bounds: list[str]) -> str:
    """The tightest of several bounds such as ">5.0"; the first one if they have different signs."""
    if len({text[0] for text in bounds}) > 1:
        return bounds[0]
    return (max if bounds[0][0] == ">" else min)(bounds, key=lambda text: float(text[1:]))


def pooled_deviation(y: np.ndarray, keys: Sequence[Hashable]) -> np.ndarray:
    """The standard deviation of repeated measurements of one molecule [T]; NaN for a target without any."""
    squares, freedom = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    for places in rows_by_key(keys).values():
        if len(places) > 1:
            labels = y[places]
            counts = (~np.isnan(labels)).sum(axis=0)
            means = np.nansum(labels, axis=0) / np.maximum(counts, 1)
            means = np.clip(means, np.fmin.reduce(labels), np.fmax.reduce(labels))  # exact for equal labels
            squares += np.nansum((labels - means) ** 2, axis=0)
            freedom += np.maximum(counts - 1, 0)
    return np.sqrt(np.where(freedom > 0, squares / np.maximum(freedom, 1), np.nan))
