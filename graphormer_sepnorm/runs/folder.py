"""The run folder: every file name of a run, and what is read of one without its tensors."""

import json
from pathlib import Path

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.data.prepared_table import TABLE
from graphormer_sepnorm.errors import InputError

WEIGHTS = "model.safetensors"
STATE = "state.safetensors"
CONFIG = "config.json"
MEMBERS = "model-*"
METRICS_FILE = "metrics.jsonl"
CURVES = "curves.png"
TEST = "test.json"


def weights_file(path: Path) -> Path:
    """The weights in a run folder, or the file itself; raises InputError for a folder without weights."""
    if path.is_dir():
        if not (path / WEIGHTS).exists():
            members = member_paths(path)
            hint = f"; it is an ensemble, name one of its models, such as {members[0]}" if members != [path] else ""
            raise InputError(f"{path} is not a run folder: it has no {WEIGHTS}{hint}")
        return path / WEIGHTS
    return path


def member_paths(path: Path) -> list[Path]:
    """The run folders ``model-0``, ``model-1``, ... of an ensemble in order, or the path itself."""
    members = sorted(path.glob(MEMBERS), key=lambda member: (len(member.name), member.name)) if path.is_dir() else []
    return members or [path]


def dataset_of(config: Config, run: Path) -> str:
    """What ``load_split`` calls a run's dataset: its name, or the path of the table that lies in the run folder."""
    return str((run if run.is_dir() else run.parent) / TABLE) if config.dataset == TABLE else config.dataset


def saved_score(run: Path) -> float | None:
    """The test score in a run folder; None where there is none, InputError for one that cannot be read."""
    path = run / TEST
    if not path.is_file():
        return None
    try:
        return float(json.loads(path.read_bytes())["value"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path} is damaged: remove it, and score the run again with evaluate.py") from None
