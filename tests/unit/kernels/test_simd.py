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


@pytest.mark.slow
@pytest.mark.parametrize("lanes", WIDTHS)
def test_lanes_follow_the_environment_variable(lanes):
    assert imported(str(lanes)).stdout.split() == [str(lanes)]


@pytest.mark.slow
@pytest.mark.parametrize("lanes", ["5", "wide"])
def test_other_lanes_are_refused(lanes):
    result = imported(lanes)
    assert result.returncode != 0
    assert result.stderr.splitlines()[-1].endswith(
        f"InputError: {LANES_VARIABLE} is {lanes!r}: set it to 4, 8 or 16, or leave it out"
    )


def imported(lanes: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from graphormer_sepnorm.kernels import simd; print(simd.LANES)"],
        env={**os.environ, LANES_VARIABLE: lanes},
        capture_output=True,
        text=True,
    )
