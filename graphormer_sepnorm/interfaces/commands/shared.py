"""Parameters of commands: shared ones, and those that dataclasses declare, kept for a call that continues; reports."""

import contextlib
import functools
import glob
import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer
from typer.core import TyperCommand

from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.options import Declared, ReadOptions, declared
from graphormer_sepnorm.system.signals import interruptible

NOT_READ = {"int_parsing": "a whole number", "float_parsing": "a number"}  # Pydantic's types of errors
PLACES = ("file", "csv")  # the table may have been moved; its content is compared later
NOT_KEPT = ("out", "resume", "root", "device")
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
YOUR_TABLE = f"Your table: {LABELLED_TABLES}; - for standard input."
ONE_CONDITION = "A condition that is the same for all molecules and not a column of the table; may be repeated."
ANY_FIELD = "Any field of the config, such as model.layers=6; applied last."
GOOD = "File .toml that says what a good molecule is: add the probability that it is one; suggest ranks by it."

Run = Annotated[str, argument("RUN", "Run folder of train FILE, or a .gsn file of it.", predicting_names)]
TableFile = Annotated[str | None, argument("FILE", YOUR_TABLE, show_default=False)]
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


def print_result(result: object, is_told: bool = True) -> None:
    """Prints a result as one line of JSON for programs; on a terminal with indentation, unless sentences told it."""
    if not sys.stdout.isatty():
        print(json.dumps(result), flush=True)
    elif not is_told:
        print(json.dumps(result, indent=2), flush=True)


@contextlib.contextmanager
def computing(device: str, precision: PrecisionName = "auto") -> Iterator[None]:
    """Context manager: what is computed uses this device, and is interrupted by an exception, which gives advice."""
    from graphormer_sepnorm.system import device as devices

    with devices.computing(devices.choose(device, precision)), interruptible():
        yield


@dataclass(frozen=True)
class FieldsOf:
    """Metadata of a parameter of the options of ``cls``: its type is ``cls``, or a dictionary of them."""

    cls: type
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    default: str = ""  # text for that of all options, which their heading gives; "": each has its own
    panel: str | None = None  # the heading in the help
    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other headings, with the fields below each

    def declared(self) -> list[Declared]:
        return declared(self.cls, self.only, self.without)

    def given(self, values: dict[str, Any]) -> dict[str, Any]:
        """Removes the values of these fields from ``values`` and returns those that were given."""
        given: dict[str, Any] = {}
        for each in self.declared():
            if (value := values.pop(each.field)) is not None:
                read = each.option.read or (lambda value: tuple(value) if isinstance(value, list) else value)
                given[each.field] = read(value)
        return given

    def parameter(self, each: Declared) -> inspect.Parameter:
        name, default, text = each.name, each.option.default, each.option.help
        if each.type is bool and (each.default or self.default):
            name = f"{name}/--no-{name.removeprefix('--')}"
        panel = next((title for title, names in self.panels.items() if each.field in names), self.panel)
        heading = f"{panel} (by default {self.default})" if self.default else panel
        if default is None:
            default = each.field if each.default is True else str(each.default or "")
        text += f"  [default: {default}]" if default and not self.default else ""
        option = typer.Option(name, help=text, show_default=False, rich_help_panel=heading)
        annotation = cast(Any, Annotated)[(each.type if each.option.read is None else str) | None, option]
        return inspect.Parameter(each.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


Reading = Annotated[ReadOptions, FieldsOf(ReadOptions, ("smiles_column", "delimiter", "sheet"), panel=READING)]
ReadingText = Annotated[ReadOptions, FieldsOf(ReadOptions, ("smiles_column", "delimiter"), panel=READING)]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options in place of each parameter that has ``FieldsOf`` in its type."""
    parameters: list[inspect.Parameter] = []
    parts: dict[str, tuple[Callable, FieldsOf]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *metadata = get_args(parameter.annotation) or [parameter.annotation]
        if of := next((part for part in metadata if isinstance(part, FieldsOf)), None):
            parameters += map(of.parameter, of.declared())
            parts[name] = kind, of
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        arguments = {name: kind(**of.given(values)) for name, (kind, of) in parts.items()}
        command(**arguments, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class ListCommand(TyperCommand):
    """A command of which an option of several values takes all that follow it, as ``--target-columns a b``."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        options, *arguments = super().collect_usage_pieces(ctx)
        return [*(re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1", piece) for piece in arguments), options]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        paragraphs = (self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(dict.fromkeys([paragraphs[0], paragraphs[-1]])))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if details := "\n\n".join((self.help or "").split("\n\n")[1:-1]):
            with formatter.section("Details"):
                formatter.write_text(details)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options, those of a panel under its heading, in the order of the parameters."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            heading = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if record := parameter.get_help_record(ctx):
                name = record[0].partition(" <")[0] if is_argument else record[0].replace("<list[str]>", "TEXT...")
                records.setdefault(heading, []).append((name, record[1]))
        for heading, lines in records.items():
            with formatter.section(heading):
                formatter.write_dl(lines)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        several = [parameter for parameter in self.params if getattr(parameter, "multiple", False)]
        options = [each for each in self.params if each.param_type_name == "option"]
        by_name = {name: each for each in options for name in [*each.opts, *each.secondary_opts]}
        for name, value in pairwise(args):
            if value in by_name and name in by_name and not getattr(by_name[name], "is_flag", False):
                ctx.fail(f"Option {name!r} needs a value in front of {value}: {getattr(by_name[name], 'help', '')}")
        if any(each.param_type_name == "argument" and each.required for each in self.params):
            are_given = len(list(takewhile(lambda text: not text.startswith("-") or text == "-", args))) > 1
            several = [each for each in several if are_given and each.metavar is None]
        try:
            return super().parse_args(
                ctx, repeat_options(args, {name for parameter in several for name in parameter.opts})
            )
        except typer.BadParameter as error:
            error.message = sentence_on_value(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        if self.name == "train" and ctx.params.get("resume") and ctx.params.get("out"):
            take_up(ctx)
        return super().invoke(ctx)


def sentence_on_value(error: typer.BadParameter) -> str:
    """The message on a wrong value of an option, with its choices and the one that is most like it."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return error.message
    (first, *_), message = errors(), error.message.removeprefix("Value error, ")
    if first["type"] in NOT_READ:
        text = str(first["input"])
        advice = f": write {text.replace(',', '.')}" if re.fullmatch(r"[+-]?\d*,\d+", text) else ""
        return f"{text!r} is not {NOT_READ[first['type']]}{advice}."
    wrong, *choices = re.findall(r"'([^']*)'", message) or [""]
    return message.rstrip(".") + (did_you_mean(wrong, choices) or ".")


def repeat_options(arguments: Iterable[str], names: set[str]) -> list[str]:
    """Arguments in which each value of the options ``names`` has its option before it."""
    result: list[str] = []
    option, is_first = "", False
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            name, equals, _ = argument.partition("=")
            option, is_first = (name, not equals) if name in names else ("", False)
        elif option and not is_first:
            result.append(option)
        else:
            is_first = False
        result.append(argument)
    return result


def given_options(context: Any) -> dict[str, Any]:
    """The arguments and options of a call that differ from their defaults and are kept, by parameter, as in JSON."""
    values = {each.name: context.params.get(each.name) for each in context.command.params if each.name not in NOT_KEPT}
    defaults = {each.name: each.default for each in context.command.params}
    options = {name: value for name, value in values.items() if value not in (None, [], (), defaults[name])}
    return json.loads(json.dumps(options, default=str))


def given_names(context: Any, names: Collection[str]) -> list[str]:
    options = given_options(context)
    params = [each for each in context.command.params if each.name in options and each.name in names]
    return [(each.secondary_opts if options[each.name] is False else each.opts)[0] for each in params]


def as_command(context: Any, scales: dict[str, tuple[str, ...]]) -> str:
    """The options of this call for ``take_up``, with the scales of targets, which may be chosen on a terminal.

    The ``shell`` among them is the command without --out.
    """
    options = given_options(context) | {name: texts for name, texts in scales.items() if texts}
    words = ["graphormer-sepnorm", str(context.info_name)]
    for each in (each for each in context.command.params if each.name in options):
        value = options[each.name]
        words += [(each.secondary_opts if value is False else each.opts)[0]] * (each.param_type_name == "option")
        words += [] if isinstance(value, bool) else map(str, value if isinstance(value, (list, tuple)) else [value])
    return json.dumps(options | {"shell": shlex.join(words)})


def take_up(context: Any) -> None:
    """Adds the options of the call that began the training in --out, without a finished ``--quick``."""
    from graphormer_sepnorm.runs.folder import RunFolder  # help does not need it

    out, options = RunFolder(Path(context.params["out"])), given_options(context)
    path = next((each.command for each in (out, out.fold(0)) if each.command.exists()), None)
    if path is None and options.keys() & {"file", "csv", "dataset"}:
        return  # begun by an earlier release, or not yet
    if path is None:
        raise InputError(f"{out} keeps no options of a training: name its table or --dataset, and its options")
    try:
        kept = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"{path} is damaged: remove it, and repeat the options of the training") from None
    was_quick = "quick" in kept and out.report.exists()
    for name, value in options.items():
        is_new = name not in kept and was_quick
        if name not in PLACES and not is_new and value != kept.get(name):
            before = f"with {kept[name]}" if name in kept else "without it"
            advice = "leave it out, or choose another --out"
            raise InputError(f"{given_names(context, [name])[0]} contradicts {out}, begun {before}: {advice}")
    left_out = (*options, *(PLACES if options.keys() & set(PLACES) else ()), *(("quick",) if was_quick else ()))
    context.params |= {name: value for name, value in kept.items() if name not in left_out and name in context.params}
