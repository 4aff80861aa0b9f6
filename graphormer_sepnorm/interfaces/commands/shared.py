"""Parameters that several commands share, and reports on results."""

import glob
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from graphormer_sepnorm.errors import InputError

# The tables that commands read; one with labels is no .smi.
PACKED = "(also .gz, .bz2, .xz, .zst)"
LABELLED_TABLES = f"CSV, SDF or .xlsx {PACKED}, or .parquet"
MOLECULE_TABLES = f"CSV, .smi, SDF or .xlsx {PACKED}, .parquet"
OUTPUT = ("--output", "-o")
ANSWERS, READING, COMPUTING = "Output", "Reading the table", "Computing"  # headings of options
PrecisionName = Literal["auto", "float32", "bfloat16"]


def model_names(incomplete: str) -> list[str]:
    """Shell completions of a model: shipped ones, and files that begin the same; the shell finds others."""
    from graphormer_sepnorm.runs.zoo import shipped_models, shipped_tables

    names = sorted(name for name in shipped_models() | shipped_tables() if name.startswith(incomplete))
    return names and [*names, *sorted(glob.glob(f"{glob.escape(incomplete)}*"))]


def predicting_names(incomplete: str) -> list[str]:
    from graphormer_sepnorm.runs.zoo import PRETRAINED

    return [name for name in model_names(incomplete) if name not in PRETRAINED]


def option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def argument(metavar: str, text: str, completion: Callable[[str], list[str]] | None = None, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=text, autocompletion=completion, **more)


MODEL = "run folder that train wrote, .gsn or weights file, or name of a shipped model, such as adme"
FOLDER = "Folder of the downloaded datasets; by default GRAPHORMER_SEPNORM_ROOT, or datasets."
ONE_CONDITION = "A condition that is the same for all molecules and not a column of the table; may be repeated."
ANY_FIELD = "Any field of the config, such as model.layers=6; applied last."
GOOD = "File .toml that says what a good molecule is: add the probability that it is one; suggest ranks by it."

Run = Annotated[str, argument("RUN", "Run folder of train FILE, or a .gsn file of it.", predicting_names)]
TableFile = Annotated[
    str | None, argument("FILE", f"Your table: {LABELLED_TABLES}; - for standard input.", show_default=False)
]
Root = Annotated[Path | None, option(FOLDER, panel=COMPUTING)]
Device = Annotated[str, option("auto (a CUDA GPU, otherwise the CPU), cpu, cuda, cuda:N, or mps.", panel=COMPUTING)]
Precision = Annotated[PrecisionName, option("Precision of matrix products; auto: float32.", panel=COMPUTING)]
TrainingPrecision = Annotated[PrecisionName, option("Precision of products; auto: the recipe's.", panel=COMPUTING)]
Settings = Annotated[list[str] | None, option(ANY_FIELD, "--set", metavar="FIELD=VALUE", panel=COMPUTING)]
AskedTask = Annotated[
    Literal["regression", "classification"] | None,
    option("Task of the table; by default detected from its labels.", "--task", panel="Your table"),
]
SmilesColumn = Annotated[str | None, option("SMILES column; by default recognized by its name.", panel=READING)]
Delimiter = Annotated[str | None, option("Delimiter; by default detected from the header.", panel=READING)]
StripSalts = Annotated[bool, option("Leave out counter-ions and solvents.", "--strip-salts", panel=READING)]
Conditions = Annotated[list[str] | None, option(ONE_CONDITION, metavar="NAME=VALUE", panel=READING)]
Split = Annotated[str, option("train, val or test.")]
Profile = Annotated[str | None, option(GOOD, panel=ANSWERS)]


def one_table(file: str | None, csv: str | None) -> str | None:
    """The table that is named as FILE or by --csv; raises InputError if both are given, or it is a folder."""
    if file is not None and csv is not None:
        raise InputError(f"name one table: {file} or --csv {csv}")
    path = csv if file is None else file
    if path is not None and Path(path).is_dir():
        raise InputError(f"{path} is a folder, not a table: name the file of your table")
    return path


def read_conditions(texts: list[str] | None) -> dict[str, str]:
    """The values in texts such as "pH=7.4", by name; raises InputError for other texts, or a repeated name."""
    conditions: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value.strip()):
            raise InputError(f"--condition {text}: give a name and a value, such as --condition pH=7.4")
        if name in conditions:
            raise InputError(f"--condition gives {name} twice")
        conditions[name] = value
    return conditions


def tell(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(sentence, file=sys.stderr)


def report_rows(result: dict, seconds: float) -> None:
    """Prints a line to standard error, and the result as JSON unless its rows went to standard output."""
    rows, unreadable, is_printed = result["rows"], result["unreadable"], result["output"] == "-"
    where = "" if is_printed else f"{result['output']}: "
    tell([f"{where}{rows - unreadable:,} of {rows:,} rows, {unreadable:,} unreadable"])
    if not is_printed:
        print_result({**result, "seconds": round(seconds, 3)})


def say_unfinished(models: Iterable[str | Path]) -> None:
    from graphormer_sepnorm.table_model.load import unfinished

    tell(unfinished(models))


def print_result(result: object, is_told: bool = True) -> None:
    """Prints a result as one line of JSON for programs; on a terminal with indentation, unless sentences told it."""
    if not sys.stdout.isatty():
        print(json.dumps(result), flush=True)
    elif not is_told:
        print(json.dumps(result, indent=2), flush=True)


def score_words(result: dict) -> str:
    """The test score with the decimals of the report, and the forest's in brackets if there is one."""
    from graphormer_sepnorm.runs.numbers import shown_together  # these imports take a while
    from graphormer_sepnorm.tasks import METRICS

    forest = result.get("baseline", {}).get("random_forest", {}).get(result["metric"])
    value, rival = shown_together([result["value"], forest], result["value"])
    beside = "" if forest is None else f" (a forest: {rival})"
    return f"{METRICS[result['metric']].title} {value}{beside}"
