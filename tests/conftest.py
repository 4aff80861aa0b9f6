import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch_geometric.data import Data

from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.dataset import ROOT_VARIABLE
from graphormer_sepnorm.encodings.shipped import Centrality, EdgePath, Spatial
from graphormer_sepnorm.system.files import CACHE_VARIABLE

settings.register_profile("default", max_examples=100, deadline=None)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.load_profile("default")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say how to run the tests that the default expression leaves out."""
    default = "not slow and not nightly"
    return ['quick tests only; all of them: pytest -m ""'] if config.option.markexpr == default else []


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Tests neither read nor fill the user's cache."""
    os.environ[CACHE_VARIABLE] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the real datasets; tests that ask for it are skipped where there is none."""
    folder = os.environ.get(ROOT_VARIABLE)
    if not folder:
        pytest.skip(f"set {ROOT_VARIABLE} to a folder with the benchmark datasets")
    return Path(folder)


@pytest.fixture
def config() -> ModelConfig:
    """A small model on five atom types and three bond types."""
    encodings = Centrality(max_degree=3), Spatial(max_distance=4), EdgePath(max_hops=3)
    sizes = {"layers": 2, "width": 16, "ffn_width": 24, "heads": 4}
    return ModelConfig((5,), (3,), **sizes, encodings=encodings, attention_dropout=0.0)


def random_graph(n: int, seed: int, extra_bonds: int = 2, pieces: int = 1) -> Data:
    """A random connected graph (or several ``pieces``) with rings, five atom types and three bond types."""
    rng = np.random.default_rng(seed)
    bonds = {}
    for i in range(1, n):
        if i % (n // pieces or 1):
            bonds[int(rng.integers(i - i % (n // pieces or 1), i)), i] = int(rng.integers(3))
    for _ in range(extra_bonds if n > 2 and pieces == 1 else 0):
        i, j = sorted(rng.choice(n, 2, replace=False).tolist())
        bonds.setdefault((i, j), int(rng.integers(3)))
    ends = np.array(list(bonds), np.int64).reshape(-1, 2)
    kinds = torch.tensor(list(bonds.values()), dtype=torch.long)
    return Data(
        x=torch.from_numpy(rng.integers(0, 5, (n, 1))),
        edge_index=torch.from_numpy(np.concatenate([ends, ends[:, ::-1]]).T.copy()),
        edge_attr=torch.cat([kinds, kinds]),
        y=torch.from_numpy(rng.normal(size=1)).float(),
        num_nodes=n,
    )


def skeleton(*ends: tuple[int, int]) -> Data:
    """A graph of these directed bonds, all of type 0."""
    types = torch.zeros(max(map(max, ends)) + 1, 1, dtype=torch.long)
    return Data(x=types, edge_index=torch.tensor(ends).t(), edge_attr=torch.zeros(len(ends), dtype=torch.long))


@pytest.fixture
def graphs() -> list[Data]:
    """Molecules of many sizes: one atom, rings, two pieces, and one larger than a vector register is wide."""
    small = [random_graph(atoms, seed) for seed, atoms in enumerate((1, 2, 7))]
    rings = [random_graph(12, 3, extra_bonds=4), random_graph(37, 5, extra_bonds=5)]
    return [*small, rings[0], random_graph(8, 4, pieces=2), rings[1]]


@pytest.fixture
def trainings(tmp_path, monkeypatch):
    """Trainings of the page by a program that only pretends to train."""
    from graphormer_sepnorm.interfaces.web.trainings import Trainings
    from tests.page import PRETENDED

    monkeypatch.setattr(Trainings, "command_line", [sys.executable, "-c", PRETENDED])
    trainings = Trainings(tmp_path / "runs")
    yield trainings
    trainings.close()
