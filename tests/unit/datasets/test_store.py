import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.datasets.benchmarks import read_sample
from graphormer_sepnorm.datasets.store import INDEX, ahead, in_memory, is_intact, open_or_write, remove
from graphormer_sepnorm.encodings.shipped import Centrality, Spatial

ENCODINGS = (Centrality(), Spatial())


@pytest.fixture(scope="module")
def molecules():
    return read_sample("val", Path()).take(np.arange(20))


def same(dataset, other, numbers) -> bool:
    one, two = dataset.batch(numbers), other.batch(numbers)
    arrays = [(one.x, two.x), (one.ptr, two.ptr), (one.y, two.y)]
    arrays += [(one.arrays[name], two.arrays[name]) for name in ("degree", "spd")]
    return all((a == b).all() for a, b in arrays) and one.arrays.keys() == two.arrays.keys()


@pytest.mark.slow
def test_a_batch_has_the_molecules_in_the_order_asked_for(molecules):
    dataset = in_memory(molecules, ENCODINGS)
    batch = dataset.batch([7, 2, 7])
    sizes = dataset.num_atoms[[7, 2, 7]].tolist()
    assert len(dataset) == 20
    assert batch.ptr.tolist() == [0, sizes[0], sizes[0] + sizes[1], 2 * sizes[0] + sizes[1]]
    assert (batch.x[: sizes[0]] == batch.x[-sizes[0] :]).all()
    assert len(batch.x) == batch.ptr[-1] and len(batch.arrays["degree"]) == batch.ptr[-1]
    assert len(batch.arrays["spd"]) == sum(size**2 for size in sizes)
    np.testing.assert_array_equal(batch.y.numpy(), dataset.y[[7, 2, 7]])


@pytest.mark.slow
def test_a_batch_has_the_weights_and_conditions_of_its_molecules(molecules):
    weight, conditions = np.arange(20, dtype=np.float32), np.arange(40, dtype=np.float32).reshape(20, 2)
    known = in_memory(replace(molecules, weight=weight, conditions=conditions), ENCODINGS)
    batch = known.batch([7, 2])
    assert batch.weight.tolist() == [7, 2] and batch.conditions.tolist() == [[14, 15], [4, 5]]
    assert known.shards[0].take(np.array([3])).conditions.tolist() == [[6, 7]]
    plain = in_memory(molecules, ENCODINGS).batch([7])
    assert plain.weight is None and plain.conditions is None


@pytest.mark.slow
def test_a_store_is_written_once_and_equals_molecules_in_memory(molecules, tmp_path, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.datasets.store.SHARD_MOLECULES", 6)  # four shards
    calls = []

    def read():
        calls.append(1)
        return molecules

    numbers = [19, 0, 5, 6, 11, 12, 3]
    for _ in range(2):
        stored = open_or_write(tmp_path / "store", read, ENCODINGS, "key", "preparing")
        assert same(stored, in_memory(molecules, ENCODINGS), numbers)
        np.testing.assert_array_equal(stored.num_atoms, in_memory(molecules, ENCODINGS).num_atoms)
    assert calls == [1] and len(list((tmp_path / "store").glob("shard-*"))) == 4
    open_or_write(tmp_path / "store", read, ENCODINGS, "another key", "preparing")
    assert calls == [1, 1]


DAMAGE = {
    "flipped": lambda shard, index: shard.write_bytes(shard.read_bytes()[:-1] + bytes([shard.read_bytes()[-1] ^ 1])),
    "cut": lambda shard, index: shard.write_bytes(shard.read_bytes()[:-1]),
    "no shard": lambda shard, index: shard.unlink(),
    "no index": lambda shard, index: index.unlink(),
    "cut index": lambda shard, index: index.write_text(index.read_text()[:-9]),
    "deeply nested index": lambda shard, index: index.write_text("[" * 100_000),
    "another file": lambda shard, index: (
        index.write_text(index.read_text().replace(shard.name, "other")),
        shard.rename(shard.with_name("other")),
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_not_intact_and_written_again(molecules, tmp_path, monkeypatch, damage):
    monkeypatch.setattr("graphormer_sepnorm.datasets.store.SHARD_MOLECULES", 20)
    folder = tmp_path / "store"
    open_or_write(folder, lambda: molecules, ENCODINGS, "key", "preparing")
    assert is_intact(folder, "key") and not is_intact(folder, "other")
    (shard,) = folder.glob("shard-*")
    DAMAGE[damage](shard, folder / INDEX)
    assert not is_intact(folder, "key")
    again = open_or_write(folder, lambda: molecules, ENCODINGS, "key", "preparing")
    assert same(again, in_memory(molecules, ENCODINGS), [3, 0]) and is_intact(folder, "key")


@pytest.mark.parametrize("kind", ["folder", "file", "link", "nothing"])
def test_files_in_place_of_a_store_are_removed(tmp_path, kind):
    path, other = tmp_path / "path", tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    if kind == "folder":
        (path / "below").mkdir(parents=True)
    elif kind == "file":
        path.touch()
    elif kind == "link":
        path.symlink_to(other)
    remove(path)
    assert not path.exists() and not path.is_symlink() and (other / "kept").exists()


def test_bounds_are_stored_and_batched(molecules, tmp_path, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.datasets.store.SHARD_MOLECULES", 6)
    assert in_memory(molecules, ENCODINGS).bounds is None and in_memory(molecules, ENCODINGS).batch([0]).bounds is None
    bounds = np.arange(40, dtype=np.float32).reshape(20, 1, 2)
    bounded = molecules.with_targets(molecules.y, bounds)
    stored = open_or_write(tmp_path / "store", lambda: bounded, ENCODINGS, "key", "preparing")
    for dataset in (stored, in_memory(bounded, ENCODINGS)):
        np.testing.assert_array_equal(dataset.bounds, bounds)
        batch = dataset.batch([7, 2, 19]).to("cpu")
        np.testing.assert_array_equal(batch.bounds.numpy(), bounds[[7, 2, 19]])
        y, found = dataset.y[[7, 2, 19]], dataset.of_molecules("bounds", np.array([7, 2, 19]))
        assert found.equal(batch.bounds) and y.tolist() == batch.y.tolist()


def test_results_come_in_order_and_a_few_are_computed_ahead():
    made = []
    results = ahead(lambda item: made.append(item) or (10 * item, threading.current_thread()), range(5))
    first, thread = next(results)
    assert first == 0 and thread is not threading.current_thread()
    assert [value for value, _ in results] == [10, 20, 30, 40] and made == list(range(5))


def test_stopping_early_leaves_no_thread():
    before = threading.active_count()
    results = ahead(str, range(10))
    next(results)
    results.close()
    assert threading.active_count() == before
