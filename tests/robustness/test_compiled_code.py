"""The cache of compiled code: nowhere to write it, and one that several machines share."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphormer_sepnorm
from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.kernels.simd import LANES_VARIABLE
from tests.robustness.processes import REPOSITORY

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


def surroundings(**changes: str) -> dict[str, str]:
    """The environment without what says where caches are and how wide vectors."""
    named = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", LANES_VARIABLE)
    kept = {name: value for name, value in os.environ.items() if name not in named}
    return {**kept, "PYTHONPATH": str(REPOSITORY), **changes}


def python(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=surroundings(**variables), cwd=REPOSITORY, capture_output=True, text=True)


@pytest.mark.slow
def test_predictions_where_neither_package_nor_home_can_be_written(tmp_path):
    site = tmp_path / "site"
    package = Path(graphormer_sepnorm.__file__).parent
    shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [site / package.name, *(path for path in site.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    command = [sys.executable, "-c", PREDICT]
    result = subprocess.run(
        command, env=surroundings(PYTHONPATH=str(site), HOME=str(home)), cwd=tmp_path, capture_output=True, text=True
    )
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
    assert compiled[1] == 2 * compiled[0] > 0
