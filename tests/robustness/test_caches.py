"""Prepared molecules that are damaged, outdated or foreign are prepared anew."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.encodings.graphormer import Centrality, Spatial
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from tests.robustness import processes, tiny_run

ENCODINGS = tiny_run.tiny_config().model.encodings
FOLDERS = [("zinc-subset", "ZINC"), pytest.param("ogbg-molhiv", "ogbg_molhiv", marks=pytest.mark.nightly)]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def reads(cache: Path) -> int:
    return len((cache / tiny_run.READS).read_text().split())


def content(encodings=ENCODINGS) -> list[np.ndarray]:
    batch = load_split("tiny", "train", encodings).batch(range(37))
    return [batch.x.numpy(), batch.y.numpy(), *(array.numpy() for array in batch.arrays.values())]


def same(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True))


def write_and_read(cache: Path, rounds: int) -> None:
    os.environ[CACHE_VARIABLE] = str(cache)
    expected = content()
    for _ in range(rounds):
        assert same(content(), expected)


@pytest.mark.slow
def test_processes_that_prepare_one_dataset_do_not_corrupt_it(cache):
    (cache / "shared").mkdir()
    started = [processes.start(write_and_read, cache / "shared", 3) for _ in range(3)]
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0, 0, 0]
    assert reads(cache / "shared") == 1


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("dataset, folder", FOLDERS)
def test_a_read_only_data_folder_without_pygs_files_works(root, tmp_path, dataset, folder):
    """Raw files alone, on a file system that is mounted read-only."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("mounting is not permitted")
    raw = tmp_path / "root" / folder
    link_raw(root / folder, raw)
    code = (
        "from graphormer_sepnorm.datasets.benchmarks import load_split\n"
        "from graphormer_sepnorm.encodings import Centrality\n"
        f"print(len(load_split({dataset!r}, 'val', (Centrality(),), {str(tmp_path / 'root')!r})))"
    )
    mount = f"mount --bind -o ro {tmp_path / 'root'} {tmp_path / 'root'}"
    python = " ".join(f'"{word}"' for word in processes.command_line("-c", code))
    surroundings = processes.surroundings()
    surroundings["env"][CACHE_VARIABLE] = str(tmp_path / "cache")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{mount} && {python}"], **surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) in (1000, 4113)
    assert not any(path.name in ("processed", "subset") for path in raw.iterdir())


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("dataset, folder", FOLDERS)
def test_damaged_files_of_pyg_are_made_anew_from_the_raw_ones(root, cache, tmp_path, dataset, folder):
    """As a process leaves them that was killed while it wrote them. The root is not touched."""
    own_root = tmp_path / "root"
    link_raw(root / folder, own_root / folder)
    expected = load_split(dataset, "val", (Centrality(),), own_root)
    (mirror,) = cache.glob("mirror-*")
    (made, *_) = mirror.rglob("processed")
    processed = shutil.copytree(made, own_root / made.relative_to(mirror))
    shutil.rmtree(mirror)
    for path in processed.glob("*.pt"):
        if not path.name.startswith("pre_"):
            os.truncate(path, path.stat().st_size // 2)
    before = {path: path.stat().st_mtime_ns for path in own_root.rglob("*")}
    again = load_split(dataset, "val", (Spatial(),), own_root)
    assert np.array_equal(again.y, expected.y) and np.array_equal(again.num_atoms, expected.num_atoms)
    assert {path: path.stat().st_mtime_ns for path in own_root.rglob("*")} == before


def link_raw(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.name not in ("processed", "subset", "full"):
            (target / path.name).symlink_to(path.resolve())
