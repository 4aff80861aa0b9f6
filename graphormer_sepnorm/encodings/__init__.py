"""Structural encodings: the arrays that each precomputes per molecule, and the module that learns from them.

Axis letters: T atoms, P ordered atom pairs, E directed bonds, D width, H heads, C channels of the pair terms (the
heads, or the hidden width of the bias network), K steps or basis functions.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import CodeType

import numpy as np
from rdkit import rdBase

from graphormer_sepnorm.encodings.base import Encoding
from graphormer_sepnorm.encodings.shipped import Centrality, Cycles, EdgePath, RandomWalk, Resistance, Rings, Spatial
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch, Graphs, Level

# Part of every cache key: increase the number when a precomputation, a featurizer or the layout of the store changes.
# Featurizers depend on RDKit, too.
PRECOMPUTE_VERSION = f"5/{rdBase.rdkitVersion}"
ENCODINGS: dict[str, type[Encoding]] = {
    "centrality": Centrality,
    "spatial": Spatial,
    "edge": EdgePath,
    "rrwp": RandomWalk,
    "resistance": Resistance,
    "rings": Rings,
    "cycles": Cycles,
}
LEVELS: dict[Level, str] = {"atom": "atom", "pair": "ordered pair of atoms", "edge": "directed bond"}
# Attributes of the graphs of PyG, and the fields of this package's.
TAKEN = {"edge_attr", "face", "num_nodes", *(field.name for graphs in (Graphs, GraphBatch) for field in fields(graphs))}
RENUMBERED = ("index", "batch")  # parts of the names of the attributes to which PyG's DataLoader adds an offset


def precompute(encodings: tuple[Encoding, ...], graphs: Graphs) -> dict[str, np.ndarray]:
    """The arrays of all encodings by name; raises InputError for others than an encoding declares."""
    arrays: dict[str, np.ndarray] = {}
    for encoding in encodings:
        own = encoding.precompute(graphs)
        if own.keys() != encoding.arrays.keys():
            problem = f"precompute of {encoding.name} returns the arrays {', '.join(own)}"
            raise InputError(f"{problem}, its field arrays declares {', '.join(encoding.arrays)}: make them the same")
        for name, level in encoding.arrays.items():
            if len(own[name]) != (expected := graphs.ptr(level)[-1]):
                problem = f"precompute of {encoding.name} returns {len(own[name])} rows in the array {name!r}"
                raise InputError(f"{problem}, it must return one per {LEVELS[level]}, {expected}")
        arrays |= own
    return arrays


def levels(encodings: tuple[Encoding, ...]) -> dict[str, Level]:
    """For each array of ``encodings``, whether its rows are atoms, pairs or bonds."""
    return {name: level for encoding in encodings for name, level in encoding.arrays.items()}


def check_arrays(encodings: tuple[Encoding, ...]) -> None:
    """Raises ValueError if two encodings have an array of one name, or a batch has another meaning for the name."""
    owners: dict[str, str] = {}
    for encoding in encodings:
        for name in encoding.arrays:
            if name in owners:
                raise ValueError(f"the array {name!r} belongs to both {owners[name]} and {encoding.name}: rename one")
            if name in TAKEN:
                raise ValueError(f"the array {name!r} of {encoding.name} has the name of a field of graphs: rename it")
            if renumbered := [part for part in RENUMBERED if part in name]:
                reason = f"because its name contains {renumbered[0]!r}: rename it"
                raise ValueError(f"PyG's DataLoader would change the array {name!r} of {encoding.name}, {reason}")
            owners[name] = encoding.name


def cache_key(encodings: tuple[Encoding, ...]) -> str:
    """The part of a cache key for encodings: their fields, and the code of ``precompute`` outside this package."""
    return f"{encodings!r}/{PRECOMPUTE_VERSION}{code_key(type(encoding).precompute for encoding in encodings)}"


def code_key(functions: Iterable[Callable]) -> str:
    """The part of a cache key for the code of those functions that are outside this package; "" if none is."""
    codes = [
        code_text(function.__code__)
        for function in map(inspect.unwrap, functions)
        if inspect.isfunction(function) and function.__module__.split(".")[0] != __name__.split(".")[0]
    ]
    return f"/{hashlib.sha256(repr(codes).encode()).hexdigest()[:16]}" if codes else ""


def code_text(code: CodeType) -> str:
    """The instructions, names and constants of a function and of those within it, without places in files or memory."""
    constants = [
        code_text(each)
        if isinstance(each, CodeType)
        else repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each)
        for each in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants))
