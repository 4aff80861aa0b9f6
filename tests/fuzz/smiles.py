"""Mutated SMILES: python -m tests.fuzz.smiles --count N --seed S."""

import contextlib
import functools
import random
from collections.abc import Iterator

import numpy as np

from graphormer_sepnorm.chem.features import FEATURIZERS, Featurizer
from graphormer_sepnorm.chem.properties import murcko_scaffold
from graphormer_sepnorm.chem.smiles import one_molecule
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


@functools.cache
def by_preparation() -> tuple[tuple[Featurizer, ...], ...]:
    """The featurizers; those with the same preparation of a SMILES together."""
    groups: dict[str, list[Featurizer]] = {}
    for featurizer in FEATURIZERS.values():
        groups.setdefault(featurizer.preparation, []).append(featurizer)
    return tuple(map(tuple, groups.values()))


def read_or_refused(text: str) -> str:
    """Reads a SMILES in every way; what is raised but InputError goes on, and so does a feature out of range."""
    featurized = 0
    for featurizers in by_preparation():
        with refused_in_words():
            prepared, mol = featurizers[0].read(text)
            for featurizer in featurizers:
                with refused_in_words():
                    with one_molecule(prepared):
                        graph = featurizer.features(mol, prepared)
                    assert (graph.x < np.array(featurizer.atom_sizes)).all() and len(graph.x) > 0
                    assert (graph.edge_attr < np.array(featurizer.bond_sizes)).all()
                    assert graph.edge_index.max(initial=0) < len(graph.x)
                    featurized += 1
    with contextlib.suppress(InputError):
        murcko_scaffold(text)
    return "read" if featurized else "refused"


@contextlib.contextmanager
def refused_in_words() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        assert str(error).isprintable() and len(str(error)) < 400, str(error)


def try_one(rng: random.Random) -> str:
    return read_or_refused(edited(rng.choice(seeds()), random_edits(rng, TOKENS)))


if __name__ == "__main__":
    run(try_one)
