"""Mutated SMILES: python -m tests.fuzz.smiles --count N --seed S."""

import contextlib
import functools
import random

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import murcko_scaffold
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from tests.fuzz.edits import edited, random_edits, run
from tests.molecules import ODDITIES, REFUSED_BY_STRICT_RDKIT

TOKENS = (
    *"CNOPSFIBcnosp*HD()[]{}=#$:-+.~/\\@%0123456789<>&? \t\n",
    "[#0]", "[#119]", "[#255]", "[CH128]", "[CH999]", "[FeH999]", "[C+15]", "[C-128]", "[256C]", "[65536C]",
    "[C:2147483648]",
    "[C@TH3]", "[Co@OH30]", "[Pt@SP9]", "[C@AL2]", "[te]", "[se]", "[Xx]", "[H]", "[H+]", "[2H]", "[U]", "[nH]", "[n+]",
    "->", "<-", "%(100)", "%99", "c1ccccc1", "C1CC1", "((((", "))))", "C=1", "\\C=C/", "|^1:0|",
    "\u00e9", "\0", "\ud800",
)  # fmt: skip


@functools.cache
def seeds() -> tuple[str, ...]:
    return (*sample_table().smiles[:2000], *ODDITIES.values(), *REFUSED_BY_STRICT_RDKIT)


def read_or_refused(text: str) -> str:
    """Reads a SMILES in every way; what is raised but InputError goes on, and so does a feature out of range."""
    read = 0
    for featurizer in FEATURIZERS.values():
        try:
            graph = featurizer.graph(text)
        except InputError as error:
            assert str(error).isprintable() and len(str(error)) < 400, str(error)
            continue
        read += 1
        assert (graph.x < np.array(featurizer.atom_sizes)).all() and len(graph.x) > 0
        assert (graph.edge_attr < np.array(featurizer.bond_sizes)).all()
        assert graph.edge_index.max(initial=0) < len(graph.x)
    with contextlib.suppress(InputError):
        murcko_scaffold(text)
    return "read" if read else "refused"


def try_one(rng: random.Random) -> str:
    return read_or_refused(edited(rng.choice(seeds()), random_edits(rng, TOKENS)))


if __name__ == "__main__":
    run(try_one)
