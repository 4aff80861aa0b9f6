"""The README's examples run as they stand, one after another, from a folder that holds the project's files."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Language and text of each example, without those that import an optional library that is not installed."""
    found = BLOCK.findall((REPOSITORY / "README.md").read_text())
    absent = [name for name in ("timm", "transformers") if importlib.util.find_spec(name) is None]
    return [
        block
        for block in found
        if not any(f"import {name}" in block[1] or f"from {name}" in block[1] for name in absent)
    ]


@pytest.mark.slow
def test_the_examples_run(tmp_path):
    """Python blocks share one session, as a reader who goes through them would have; shell blocks run in between."""
    for name in ("data", "train.py", "evaluate.py"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    program = []
    for language, text in blocks():
        if language == "python":
            program.append(text)
        else:
            program.append(f"import subprocess; subprocess.run({text!r}, shell=True, check=True)")
    script = tmp_path / "readme.py"
    script.write_text("\n".join(program))
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_are_examples_for_every_use():
    text = "\n".join(block for _, block in blocks())
    for use in ("from_pretrained", "GraphormerRegressor", "GraphormerEmbedder", "separate_norms", "explain", "predict"):
        assert use in text, use
