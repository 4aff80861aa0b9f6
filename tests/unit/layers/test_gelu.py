import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphormer_sepnorm.layers.gelu import gelu

ROWS = torch.tensor([[-2.0, -0.5, 0.0], [0.5, 1.0, 3.0]], dtype=torch.float64, requires_grad=True)


def test_gelu_is_x_times_the_normal_distribution():
    expected = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in ROWS.tolist()]
    torch.testing.assert_close(gelu(ROWS), torch.tensor(expected, dtype=torch.float64))


def test_the_gradient_of_gelu():
    assert torch.autograd.gradcheck(gelu, ROWS)


@pytest.mark.slow
@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without oneDNN")
def test_no_program_is_compiled_for_the_number_of_atoms():
    """oneDNN logs the shapes that it computes: only those of the head, of two molecules."""
    code = """if True:
        from torch_geometric.data import Batch
        from graphormer_sepnorm import Graphormer, best
        from tests.conftest import random_graph
        model = Graphormer(best((5,), (3,)))
        transform = model.transform()
        model(Batch.from_data_list([transform(random_graph(n, seed=n)) for n in (7, 4)])).sum().backward()
    """
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "ONEDNN_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    computed = [line.split(",") for line in said.splitlines() if ",exec,cpu,eltwise" in line]
    assert {fields[-2] for fields in computed} == {"2x80"}
