"""The scripts in examples/, as modules."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.robustness import processes

EXAMPLES = Path(__file__).parents[1] / "examples"


def load_example(name: str) -> ModuleType:
    if str(EXAMPLES) not in sys.path:  # as Python does it for a script: it finds the modules beside it
        sys.path.append(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_example(name: str, *arguments: str | os.PathLike) -> subprocess.CompletedProcess:
    """The script from the command line, on this tree's package."""
    return processes.command(EXAMPLES / f"{name}.py", *arguments, timeout=1200)
