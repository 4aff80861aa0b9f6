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
    """A named dataset."""

    task: TaskConfig
    featurizer: str
    read: Callable[[str, Path], Graphs]  # from a split and the root folder
    source: Callable[[Path], str]  # from the root folder to a text that changes when the raw data changes
    folder: str | None = None  # of the raw data, below the root
    evaluate: Callable[[np.ndarray, np.ndarray], float] | None = None  # the benchmark's, from labels and predictions


def data_root(root: str | os.PathLike | None) -> Path:
    """The folder of the downloaded datasets: the argument, the environment variable, or ``datasets`` in this folder."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or "datasets")
