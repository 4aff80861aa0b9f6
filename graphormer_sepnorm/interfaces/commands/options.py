"""What several commands share: options, and how a table that was written is reported."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Part = TypeVar("Part", bound="DataclassInstance")

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
AskedTask = Annotated[
    Literal["regression", "classification"] | None,
    typer.Option("--task", help="Of --csv; by default found in its labels."),
]
StripSalts = Annotated[
    bool,
    typer.Option("--strip-salts", help="Read the largest organic part of each molecule; a model may do so anyway."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any field of the config, such as model.layers=6; applied last."),
]


def with_given(config: Part, options: Mapping[str, object]) -> Part:
    """A part of a config with the options that are not left to the recipe."""
    return replace(config, **{name: value for name, value in options.items() if value is not None})


def report_rows(result: dict, seconds: float) -> None:
    """A line for people on standard error, and the result as JSON unless its rows are on standard output."""
    read = result["rows"] - result["unreadable"]
    print(f"{result['output']}: {read} of {result['rows']} rows, {result['unreadable']} unreadable", file=sys.stderr)
    if result["output"] != "-":
        print(json.dumps({**result, "seconds": round(seconds, 3)}))
