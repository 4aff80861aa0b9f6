"""The kernels with vector widths other than this processor's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphormer_sepnorm.kernels.simd import LANES, LANES_VARIABLE

WIDTHS = (4, 8, 16)
OTHERS = [width for width in WIDTHS if width != LANES]


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [OTHERS[0], *(pytest.param(o, marks=pytest.mark.nightly) for o in OTHERS[1:])])
def test_kernels_match_their_references_with_other_lanes(lanes):
    kernels = str(Path(__file__).with_name("test_cpu_attention.py"))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", kernels],
        env={**os.environ, LANES_VARIABLE: str(lanes)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-5000:]
