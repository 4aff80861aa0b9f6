"""What several commands share: options, and how a table that was written is reported."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the downloaded datasets; also the environment variable GRAPHORMER_SEPNORM_ROOT."),
]
Device = Annotated[
    str, typer.Option(help="Where to compute: auto (a CUDA GPU, otherwise the CPU), cpu, cuda, cuda:N, or mps.")
]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option(help="Of the matrix products; auto: float32.")
]
TrainingPrecision = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option(help="Of the matrix products; auto: the recipe's.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any field of the config, such as model.layers=6; applied last."),
]


def given(options: dict[str, object]) -> dict[str, object]:
    """The options that are not left to the recipe."""
    return {name: value for name, value in options.items() if value is not None}


def report_rows(result: dict, seconds: float) -> None:
    """A line for people on standard error, and the result as JSON."""
    read = result["rows"] - result["unreadable"]
    print(f"{result['output']}: {read} of {result['rows']} rows, {result['unreadable']} unreadable", file=sys.stderr)
    print(json.dumps({**result, "seconds": round(seconds, 3)}))
