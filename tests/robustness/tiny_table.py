"""Predictions and embeddings of a tiny model for a small table, by a process that can be killed at any write."""

import os
import signal
import sys
from pathlib import Path

from graphormer_sepnorm.options import ReadOptions
from graphormer_sepnorm.output import resumable_writer
from graphormer_sepnorm.output.embed_table import embed_table
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.predictors import Embedder, Predictor
from tests.tiny import tiny_model

TABLE = "smiles,note\nCCO,a\nC[C,b\nCCN,c\n"
resumable_writer.molecules_at_once = lambda device: 2


def write(command: str, source: Path, out: Path, resume: bool = False) -> None:
    if command == "predict":
        predict_table(Predictor([tiny_model()]), str(source), out, ReadOptions(resume=resume))
    else:
        embed_table(Embedder(*tiny_model()), str(source), out, ReadOptions(resume=resume))


def write_until_killed(operation: int, command: str, source: Path, out: Path) -> None:
    """``write``, killed before it opens, renames or removes a file beside ``out`` for so many times."""
    left = operation

    def count(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.remove") and Path(str(arguments[0])).parent == out.parent:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    write(command, source, out)
