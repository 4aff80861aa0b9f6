"""Caches of prepared molecules and of compiled code: damaged, outdated, shared, or nowhere to write them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphormer_sepnorm
from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.encodings.shipped import Centrality, Spatial
from graphormer_sepnorm.kernels.simd import LANES_VARIABLE
from graphormer_sepnorm.system.files import CACHE_VARIABLE
from tests.robustness import processes, tiny_run
from tests.robustness.processes import REPOSITORY

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
    processes.all_succeed([processes.start(write_and_read, cache / "shared", 3) for _ in range(3)])
    assert reads(cache / "shared") == 1


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("dataset, folder", FOLDERS)
def test_a_read_only_data_folder_without_pygs_files_works(root, tmp_path, dataset, folder):
    """Raw files alone, on a file system that is mounted read-only."""
    raw = tmp_path / "root" / folder
    link_raw(root / folder, raw)
    code = (
        "from graphormer_sepnorm.datasets.benchmarks import load_split\n"
        "from graphormer_sepnorm.encodings import Centrality\n"
        f"print(len(load_split({dataset!r}, 'val', (Centrality(),), {str(tmp_path / 'root')!r})))"
    )
    mount = f"mount --bind -o ro {tmp_path / 'root'} {tmp_path / 'root'}"
    surroundings = processes.surroundings()
    surroundings["env"][CACHE_VARIABLE] = str(tmp_path / "cache")
    done = processes.mounted(mount, processes.command_line("-c", code), **surroundings)
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


SMILES = ["CCO", "c1ccccc1O", "CC(=O)Nc1ccc(O)cc1"]
PREDICT = f"""
import json
from graphormer_sepnorm import Graphormer
print(json.dumps(Graphormer.from_pretrained("zinc-subset").predict({SMILES}).tolist()))
"""
# Another machine, as far as the choice of lanes and Numba can see.
ATTEND = """
import sys
import llvmlite.binding
features, name, wide = llvmlite.binding.get_host_cpu_features(), sys.argv[1], sys.argv[2] == "wide"
features["avx512f"] = wide
llvmlite.binding.get_host_cpu_features = lambda: features
llvmlite.binding.get_host_cpu_name = lambda: name
from tests.unit.kernels import test_cpu_attention
test_cpu_attention.test_attention_matches_reference([30, 5, 12], 2, 10, False)
"""


def python(code: str, *arguments: str, cwd: Path = REPOSITORY, **variables: str) -> subprocess.CompletedProcess:
    """Runs code without the environment's words on where caches are and how wide vectors."""
    named = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", LANES_VARIABLE)
    kept = {name: value for name, value in os.environ.items() if name not in named}
    environment = {**kept, "PYTHONPATH": str(REPOSITORY), **variables}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


@pytest.mark.slow
def test_predictions_where_neither_package_nor_home_can_be_written(tmp_path):
    site = tmp_path / "site"
    package = Path(graphormer_sepnorm.__file__).parent
    shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [site / package.name, *(path for path in site.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    result = python(PREDICT, cwd=tmp_path, PYTHONPATH=str(site), HOME=str(home))
    assert result.returncode == 0, result.stderr[-2000:]
    expected = Graphormer.from_pretrained("zinc-subset").predict(SMILES).tolist()
    assert json.loads(result.stdout.splitlines()[-1]) == expected
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "lanes"),
    [
        pytest.param(("one", "wide"), ("one", "narrow"), (None, None), marks=pytest.mark.nightly),
        pytest.param(("one", "narrow"), ("other", "narrow"), (None, None), marks=pytest.mark.nightly),
        (("one", "narrow"), ("one", "narrow"), ("8", "4")),
    ],
    ids=["registers", "name", "setting"],
)
def test_machines_that_share_a_cache_compile_code_of_their_own(first, second, lanes, tmp_path):
    """Numba is told the same processor for both, so its own key is the same."""
    shared = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    compiled = []
    for machine, width in zip((first, second), lanes, strict=True):
        result = python(ATTEND, *machine, **shared, **({LANES_VARIABLE: width} if width else {}))
        assert result.returncode == 0, result.stderr[-2000:]
        compiled.append(len(list(tmp_path.rglob("*.nbc"))))
    again = compiled[1] - compiled[0]
    assert again == (compiled[0] if lanes == (None, None) else 2) > 0  # two kernels depend on the lanes
