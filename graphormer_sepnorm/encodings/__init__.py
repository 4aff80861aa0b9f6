"""Structural encodings: what each precomputes per molecule, and the module that learns from it, side by side.

An encoding is a frozen dataclass of its hyperparameters with

    arrays                            names of the arrays it needs in a batch
    precompute(graphs)                those arrays for packed molecules, per atom [T, ...] or per ordered pair [P, ...]
    module(width, channels, heads)    an ``nn.Module`` from GraphBatch to ``Terms``; the model draws its first weights

A new one is a class here and a line in ``ENCODINGS``. Axis letters: T atoms, P ordered atom pairs, E directed bonds,
D width, H heads, C channels of the pair terms (the heads, or the hidden width of the bias network), K steps or basis
functions.
"""

import numpy as np

from graphormer_sepnorm.encodings.centrality import Centrality
from graphormer_sepnorm.encodings.edge_path import EdgePath
from graphormer_sepnorm.encodings.in_blocks import Bonds, DegreeScaling
from graphormer_sepnorm.encodings.random_walk import RandomWalk
from graphormer_sepnorm.encodings.resistance import Resistance
from graphormer_sepnorm.encodings.rings import Rings
from graphormer_sepnorm.encodings.spatial import Spatial
from graphormer_sepnorm.graphs import PackedGraphs

# Part of every cache key: raise it when a precomputation or a featurizer changes.
PRECOMPUTE_VERSION = 1
Encoding = Centrality | Spatial | EdgePath | RandomWalk | Resistance | Bonds | DegreeScaling | Rings
ENCODINGS: dict[str, type[Encoding]] = {
    "centrality": Centrality,
    "spatial": Spatial,
    "edge": EdgePath,
    "rrwp": RandomWalk,
    "resistance": Resistance,
    "bonds": Bonds,
    "degree_scaling": DegreeScaling,
    "rings": Rings,
}


def precompute(encodings: tuple[Encoding, ...], graphs: PackedGraphs) -> dict[str, np.ndarray]:
    """The arrays of all ``encodings`` for packed molecules, by name."""
    return {name: array for encoding in encodings for name, array in encoding.precompute(graphs).items()}
