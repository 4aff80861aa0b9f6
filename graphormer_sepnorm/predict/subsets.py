"""Facts about the training molecules of each endpoint, computed once and kept in the cache."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from rdkit import rdBase

from graphormer_sepnorm.predict.domain import Domain
from graphormer_sepnorm.runs.arrays import array_digest, part_arrays
from graphormer_sepnorm.system.files import cache_root, mark_used, replacing

FORMAT = 1  # of the file; another one for other definitions of the facts


@dataclass(frozen=True)
class Subset:
    """Facts about some training molecules, as those of a ``Domain`` of the same names."""

    known_kinds: frozenset[tuple[int, int]]
    atoms: tuple[int, int]
    charges: tuple[int, int]
    knows_mixtures: bool
    known_rarities: frozenset[str]
    usual_similarity: float


def subsets_of(domain: Domain, subsets: Sequence[np.ndarray]) -> list[Subset]:
    """The facts about S subsets of the training molecules, by their rows; from the cache if they are there."""
    rows = {str(number): each for number, each in enumerate(subsets)}
    digest = array_digest(part_arrays("domain", domain) | rows, {"format": FORMAT, "rdkit": rdBase.rdkitVersion})
    path, adapter = cache_root() / f"subsets-{digest[:16]}", TypeAdapter(list[Subset])
    try:
        found = adapter.validate_json(path.read_bytes())
        mark_used(path)
        return found
    except (OSError, ValueError):
        parts = map(domain.of_rows, subsets)
        found = [Subset(**{each.name: plain(getattr(part, each.name)) for each in fields(Subset)}) for part in parts]
    with suppress(OSError), replacing(path) as file:  # where the cache can be written
        file.write(adapter.dump_json(found))
    return found


def plain(fact: Any) -> Any:
    return tuple(fact.tolist()) if isinstance(fact, np.ndarray) else fact
