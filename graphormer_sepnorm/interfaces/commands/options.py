"""Shared code of the commands: options, and the report on a written table."""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphormer_sepnorm.errors import InputError

if TYPE_CHECKING:
    from graphormer_sepnorm.config import TrainConfig

Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the downloaded datasets; also the environment variable GRAPHORMER_SEPNORM_ROOT."),
]
Device = Annotated[str, typer.Option(help="Device: auto (a CUDA GPU, otherwise the CPU), cpu, cuda, cuda:N, or mps.")]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option(help="Precision of matrix products; auto: float32.")
]
TrainingPrecision = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option(help="Precision of matrix products; auto: the recipe's.")
]
AskedTask = Annotated[
    Literal["regression", "classification"] | None,
    typer.Option("--task", help="Task of the table; by default detected from its labels."),
]
TableFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Your table: CSV, .smi, SDF, .xlsx, .parquet, also .gz.", show_default=False),
]
StripSalts = Annotated[
    bool,
    typer.Option("--strip-salts", help="Read the largest organic part of each molecule; a model may do so anyway."),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Condition of the measurement, the same for all molecules, that the table has no column of; repeatable.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any field of the config, such as model.layers=6; applied last."),
]


def with_given(config: "TrainConfig", options: Mapping[str, Any]) -> "TrainConfig":
    """The optimization with the given options; the others keep the recipe's values."""
    return replace(config, **{name: value for name, value in options.items() if value is not None})


def one_table(file: str | None, csv: str | None) -> str | None:
    """The table that is named as FILE or by --csv; raises InputError if both are given."""
    if file is not None and csv is not None:
        raise InputError(f"name one table: {file} or --csv {csv}")
    return csv if file is None else file


def read_conditions(texts: list[str] | None) -> dict[str, str]:
    """The values in texts such as "pH=7.4", by name; raises InputError for other texts, or a repeated name."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value.strip()):
            raise InputError(f"--condition {text}: give a name and a value, such as --condition pH=7.4")
        if name in found:
            raise InputError(f"--condition gives {name} twice")
        found[name] = value
    return found


def report_rows(result: dict, seconds: float) -> None:
    """Prints a line to standard error, and the result as JSON unless its rows went to standard output."""
    read = result["rows"] - result["unreadable"]
    print(f"{result['output']}: {read} of {result['rows']} rows, {result['unreadable']} unreadable", file=sys.stderr)
    if result["output"] != "-":
        print(json.dumps({**result, "seconds": round(seconds, 3)}))
