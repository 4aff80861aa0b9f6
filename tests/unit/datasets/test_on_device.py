import numpy as np
import pytest
import torch

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.datasets.on_device import DeviceDataset, best_length, fits, random_shape, smallest_shape
from graphormer_sepnorm.datasets.store import MoleculeDataset, prepare
from graphormer_sepnorm.encodings import ENCODINGS
from graphormer_sepnorm.graphs import Shape

ENCODED = tuple(kind() for kind in ENCODINGS.values())
SMILES = ("CCO", "C", "c1ccccc1O", "CC(=O)O", "[Na+].[Cl-]", "C1CC1")


@pytest.fixture(scope="module")
def dataset() -> MoleculeDataset:
    """Two shards of molecules with targets, one without a bond among them."""
    featurizer = FEATURIZERS["ogb"]
    shards = []
    for number, smiles in enumerate((SMILES[:2], SMILES[2:])):
        y = np.arange(len(smiles), dtype=np.float32).reshape(-1, 1) + 10 * number
        graphs = featurizer.pack([featurizer.graph(text) for text in smiles]).with_targets(y)
        shards.append(prepare(graphs, ENCODED))
    return MoleculeDataset(shards)


def test_a_batch_gathered_on_the_device_is_that_of_the_host_with_padding_behind(dataset):
    data = DeviceDataset(dataset, "cpu")
    order = np.array([4, 2, 1, 5])
    shape = Shape(6, 30, 100, 40, 16)
    expected, found = dataset.batch(order), data.batch(data.numbers(order, 6), shape)
    atoms, pairs, edges = expected.num_atoms, expected.num_pairs, len(expected.bond)
    assert found.ptr.tolist() == [*expected.ptr.tolist(), atoms, atoms]
    assert torch.equal(found.x[:atoms], expected.x) and len(found.x) == 30
    assert torch.equal(found.edge_index[:, :edges], expected.edge_index)
    assert (found.edge_index[:, edges:] == 29).all() and found.edge_index.shape == (2, 40)
    assert torch.equal(found.bond[:edges], expected.bond) and (found.bond >= 1).all()
    assert torch.equal(found.in_degree[:atoms], expected.in_degree)
    for name, array in expected.arrays.items():
        rows = {"atom": atoms, "pair": pairs, "edge": edges}[data.levels[name]]
        assert torch.equal(found.arrays[name][:rows], array)
        assert not found.arrays[name][rows:].any()
    assert torch.equal(found.y[:4], expected.y) and found.y[4:].isnan().all()
    assert found.real.tolist() == [True] * 4 + [False] * 2 + [True] * atoms + [False] * (30 - atoms)
    assert found.num_pairs == 100


def test_sizes_are_known_on_the_host(dataset):
    data = DeviceDataset(dataset, "meta")
    assert data.sizes.tolist() == [[3, 9, 4], [1, 1, 0], [7, 49, 14], [4, 16, 6], [2, 4, 0], [3, 9, 6]]
    assert len(data) == data.blank == 6
    assert data.batch(data.numbers(np.array([0, 2]), 3), smallest_shape(data.sizes[[0, 2]])).y.device.type == "meta"


def test_shapes_hold_what_they_are_for_and_an_atom_of_padding():
    sizes = np.array([[7, 49, 14], [64, 4096, 130]])
    shape = smallest_shape(sizes)
    assert shape == Shape(2, 128, 4160, 192, 72)
    assert fits(sizes, shape)
    for changed in ([[7, 49, 14], [121, 4096, 130]], [[7, 100, 14], [64, 4096, 130]], [[7, 49, 100], [64, 4096, 130]]):
        assert not fits(np.array(changed), shape)
    assert not fits(np.array([[1, 1, 0]] * 3), shape)
    assert not fits(np.array([[72, 49, 14]]), shape)


def test_most_random_batches_fit_into_one_shape_and_rare_giants_do_not_stretch_it():
    rng = np.random.default_rng(0)
    atoms = np.clip(rng.normal(24, 5, 10_000).astype(int), 1, None)
    sizes = np.stack([atoms, atoms**2, 2 * atoms], axis=1)
    sizes[17] = (1000, 1_000_000, 2000)
    shape = random_shape(sizes, 256)
    assert shape.molecules == 256 and shape.length <= 56 and shape.length % 8 == 0
    fitting = [fits(sizes[rng.choice(10_000, 256, replace=False)], shape) for _ in range(200)]
    assert np.mean(fitting) > 0.9
    assert not fits(sizes[:256], shape)


def test_the_length_is_that_of_the_largest_molecule_where_all_are_alike():
    assert best_length(np.array([20, 23, 38, 31]), 4) == 40
