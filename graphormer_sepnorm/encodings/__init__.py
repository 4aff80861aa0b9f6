"""Structural encodings: the arrays that each precomputes per molecule, and the module that learns from them.

An encoding is a frozen dataclass of its hyperparameters that implements ``base.Encoding``. To add one, write a class
and add a line to ``ENCODINGS``. Axis letters: T atoms, P ordered atom pairs, E directed bonds, D width, H heads, C
channels of the pair terms (the heads, or the hidden width of the bias network), K steps or basis functions.
"""

import numpy as np

from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.encodings.centrality import Centrality
from graphormer_sepnorm.encodings.cycles import Cycles
from graphormer_sepnorm.encodings.edge_path import EdgePath
from graphormer_sepnorm.encodings.random_walk import RandomWalk
from graphormer_sepnorm.encodings.resistance import Resistance
from graphormer_sepnorm.encodings.rings import Rings
from graphormer_sepnorm.encodings.spatial import Spatial
from graphormer_sepnorm.graphs import Graphs, Level

# Part of every cache key: increase it when a precomputation, a featurizer or the layout of the store changes.
PRECOMPUTE_VERSION = 3
ENCODINGS: dict[str, type[Encoding]] = {
    "centrality": Centrality,
    "spatial": Spatial,
    "edge": EdgePath,
    "rrwp": RandomWalk,
    "resistance": Resistance,
    "rings": Rings,
    "cycles": Cycles,
}


def precompute(encodings: tuple[Encoding, ...], graphs: Graphs) -> dict[str, np.ndarray]:
    """The arrays of all ``encodings`` for packed molecules, by name."""
    return {name: array for encoding in encodings for name, array in encoding.precompute(graphs).items()}


def levels(encodings: tuple[Encoding, ...]) -> dict[str, Level]:
    """For each array of ``encodings``, whether its rows are atoms, pairs or bonds."""
    return {name: level for encoding in encodings for name, level in encoding.arrays.items()}
