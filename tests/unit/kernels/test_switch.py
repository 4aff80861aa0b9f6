"""When compiled code is imported, how it is turned off, and computation without it."""

import json
import os
import subprocess
import sys

import pytest
import torch

from graphormer_sepnorm import kernels
from graphormer_sepnorm.encodings import ENCODINGS, precompute
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import pack_data
from graphormer_sepnorm.kernels import KERNELS_VARIABLE, dense, switch, use_kernels
from tests.conftest import random_graph

COMPILERS = "sorted({name.split('.')[0] for name in sys.modules} & {'numba', 'llvmlite'})"
OPERATION = """
import sys, torch
from graphormer_sepnorm import kernels
index, table = torch.tensor([[0, 2], [1, 1]]), torch.arange(6.0).view(3, 2)
assert kernels.embedding_sum(index, table).tolist() == [[4, 6], [4, 6]]
"""
WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None"
ARRAYS = """
import json
from tests.unit.kernels.test_switch import arrays
print(json.dumps(arrays()))
"""
PREDICT = """
import json
from graphormer_sepnorm import Graphormer
print(json.dumps(Graphormer.from_pretrained("zinc-subset").predict(["CCO", "CC(=O)Nc1ccc(O)cc1"]).tolist()))
"""


@pytest.fixture(autouse=True)
def _default_mode(monkeypatch):
    """Tests start without a choice, and leave none."""
    monkeypatch.setenv(KERNELS_VARIABLE, "auto")


def python(code: str, mode: str = "auto") -> subprocess.CompletedProcess:
    environment = {**os.environ, KERNELS_VARIABLE: mode, "OMP_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return result


def arrays() -> dict[str, list]:
    """The arrays of all encodings for a few molecules."""
    graphs = [random_graph(1, 0), random_graph(9, 1, extra_bonds=3), random_graph(8, 2, pieces=2)]
    encodings = tuple(encoding() for encoding in ENCODINGS.values())
    return {name: array.tolist() for name, array in precompute(encodings, pack_data(graphs, (3,))).items()}


def compiles() -> bool:
    return kernels.runs_compiled(torch.zeros(1))


@pytest.mark.slow
def test_importing_imports_no_compiler():
    names = ("kernels", "model", "config", "encodings", "predict.pretrained")
    modules = ", ".join(f"graphormer_sepnorm.{name}" for name in names)
    code = f"import sys, {modules}; print({COMPILERS}, 'torch._dynamo' in sys.modules)"
    assert python(code).stdout.split() == ["[]", "False"]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "compilers"), [("auto", ["llvmlite", "numba"]), ("off", [])])
def test_the_first_operation_imports_the_compiler_unless_the_environment_turns_kernels_off(mode, compilers):
    assert python(f"{OPERATION}print({COMPILERS})", mode).stdout.strip() == str(compilers)


def attend_to_two_atoms() -> kernels.Attention:
    return kernels.make_attention(torch.tensor([0, 2]), torch.zeros(4, 1), torch.zeros(1))


def test_switched_off_operations_are_plain_pytorch():
    use_kernels("off")
    assert not compiles()
    assert isinstance(attend_to_two_atoms(), dense.PaddedAttention)
    use_kernels("auto")
    assert compiles()
    assert type(attend_to_two_atoms()).__name__ == "FusedAttention"


@pytest.mark.parametrize("mode", ["on", "", "OFF"])
def test_other_modes_are_refused(mode, monkeypatch):
    with pytest.raises(InputError, match=f"mode is '{mode}': set it to auto or off"):
        use_kernels(mode)
    assert os.environ[KERNELS_VARIABLE] == "auto"
    monkeypatch.setenv(KERNELS_VARIABLE, mode)
    with pytest.raises(InputError, match=f"{KERNELS_VARIABLE} is '{mode}': set it to auto or off"):
        compiles()


@pytest.mark.parametrize(("threads", "runs"), [(1, True), (2, False)])
def test_without_the_thread_pool_kernels_run_only_on_one_thread(threads, runs, monkeypatch):
    monkeypatch.setattr(switch, "pool_launcher", lambda: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert compiles() is runs


def test_other_types_and_devices_run_in_plain_pytorch():
    assert not kernels.runs_compiled(torch.zeros(1, dtype=torch.float64))
    assert not kernels.runs_compiled(torch.zeros(1, device="meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not compiles()


@pytest.mark.slow
def test_encodings_are_the_same_without_numba():
    assert json.loads(python(f"{WITHOUT_NUMBA}\n{ARRAYS}").stdout) == json.loads(json.dumps(arrays()))


@pytest.mark.slow
def test_predictions_without_numba_agree_and_one_warning_says_why():
    result = python(f"{WITHOUT_NUMBA}\n{PREDICT}")
    assert result.stderr.count("numba cannot be imported") == 1
    expected = torch.tensor(json.loads(python(PREDICT).stdout))
    torch.testing.assert_close(torch.tensor(json.loads(result.stdout)), expected, rtol=1e-5, atol=1e-5)
