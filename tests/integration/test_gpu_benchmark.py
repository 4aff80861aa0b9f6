"""The script that measures training on a GPU, tried on the CPU with a few molecules."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from tests.robustness import processes

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"


def run(*arguments: object) -> None:
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    subprocess.run(command, env=processes.surroundings()["env"], cwd=SCRIPT.parent, check=True)


@pytest.mark.slow
def test_every_figure_is_a_line_of_the_file(tmp_path):
    """Of two batch sizes; compiling is left out by the limit, which is up before it begins."""
    sample_table()[:40].to_csv(tmp_path / "few.csv", index=False)
    packed, out = tmp_path / "few.safetensors", tmp_path / "results.jsonl"
    run("pack", tmp_path / "few.csv", packed, "--count", 40)
    options = ["--device", "cpu", "--models", "slim", "--batch-sizes", 4, 8, "--seconds", 0.01, "--warmup", 1]
    run("measure", packed, out, *options, "--limit", 0)
    assert out.read_text() == ""
    run("measure", packed, out, *options, "--rows", 2)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["model"], line["batch"], line["compiled"]) for line in lines] == [
        ("slim", 4, False),
        ("slim", 8, False),
    ]
    assert all(line["molecules_per_s"] > 0 and line["busy"] is None for line in lines)
