"""The ``Dataset`` class, and the folder of the downloaded datasets."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.graphs import Graphs

SPLITS = ("train", "val", "test")
SplitName = Literal["scaffold", "scaffold-deepchem", "random", "butina", "column", "time"]
ROOT_VARIABLE = "GRAPHORMER_SEPNORM_ROOT"


@dataclass(frozen=True)
class Dataset:
    """A named dataset.

    Attributes:
        task: the targets and the metric; the scaling is computed from the training split.
        featurizer: name in ``FEATURIZERS``.
        read: maps a split and the root folder to molecules with targets.
        source: maps the root folder to a text that changes when the raw data changes.
        folder: folder below the root that holds the raw data; None if the data is not below the root.
        evaluate: evaluator of the benchmark for the metric of ``task``, from labels [M, tasks] and predictions
            [M, tasks] to the published score; None to use the package's own metric.
    """

    task: TaskConfig
    featurizer: str
    read: Callable[[str, Path], Graphs]
    source: Callable[[Path], str]
    folder: str | None = None
    evaluate: Callable[[np.ndarray, np.ndarray], float] | None = None


def data_root(root: str | os.PathLike | None) -> Path:
    """The folder of the downloaded datasets: the argument, the environment variable, or ``datasets`` in this folder."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or "datasets")
