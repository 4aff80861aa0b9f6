"""What a named dataset is, and where downloads and prepared molecules lie."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.graphs import Graphs
from graphormer_sepnorm.system.files import CACHE_VARIABLE as CACHE_VARIABLE
from graphormer_sepnorm.system.files import cache_root as cache_root

SPLITS = ("train", "val", "test")
SplitName = Literal["scaffold", "scaffold-deepchem", "random", "butina", "column", "time"]
ROOT_VARIABLE = "GRAPHORMER_SEPNORM_ROOT"


@dataclass(frozen=True)
class Dataset:
    """A named dataset.

    Attributes:
        task: what is predicted; its scale is left to the training split.
        featurizer: name in ``FEATURIZERS``.
        read: split and root folder to molecules with targets.
        source: root folder to a text that changes when the raw data does.
        folder: folder below the root that holds the raw data; None for data that does not lie there.
        evaluate: the benchmark's own evaluator, from labels [M, tasks] and predictions [M, tasks] to the score that is
            published; None where the metric of the task is used.
    """

    task: TaskConfig
    featurizer: str
    read: Callable[[str, Path], Graphs]
    source: Callable[[Path], str]
    folder: str | None = None
    evaluate: Callable[[np.ndarray, np.ndarray], float] | None = None


def data_root(root: str | os.PathLike | None) -> Path:
    """The folder of the downloaded datasets: the argument, the environment variable, or ``datasets`` here."""
    return Path(root or os.environ.get(ROOT_VARIABLE) or "datasets")
