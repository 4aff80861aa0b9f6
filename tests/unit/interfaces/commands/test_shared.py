"""Commands whose options are declared by dataclasses, and kept for a call that continues."""

import json
import os
import pty
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import alone
from graphormer_sepnorm.interfaces.commands.own_table import detected, on_better_scales, only_target, words_on_masses
from graphormer_sepnorm.interfaces.commands.sentences import on_targets
from graphormer_sepnorm.interfaces.commands.shared import (
    FieldsOf,
    ListCommand,
    as_command,
    expanded,
    model_names,
    predicting_names,
    print_result,
    read_conditions,
    report_rows,
)
from graphormer_sepnorm.interfaces.commands.train import OF_ENSEMBLES, EnsembleOptions
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.runs.zoo import PRETRAINED
from graphormer_sepnorm.tables.formats.table import Row, WholeTable
from graphormer_sepnorm.tables.labels import read_whole
from graphormer_sepnorm.tables.options import TableOptions


def halves(text: str) -> tuple[str, ...]:
    return tuple(text.split(":"))


@dataclass(frozen=True)
class Tea:
    sugar: Annotated[int, Option("Spoons.")] = 2
    milk: Annotated[bool, Option("White.")] = False
    warm: Annotated[bool, Option("Not cold.")] = True
    parts: Annotated[tuple[str, ...], Option("Two.", "cut", halves)] = ()
    guests: Annotated[tuple[str, ...], Option("Who comes.")] = ()
    leaf: Annotated[Literal["black", "green"], Option("Kind of leaf.")] = "black"

    def __post_init__(self):
        if self.sugar > 9:
            raise InputError("too sweet")


@dataclass(frozen=True)
class Pot:
    size: Annotated[int, Option("Cups.")] = 4


OF_TEA = FieldsOf(Tea, panel="For the tea")
InPot, WithTea = Annotated[Pot, FieldsOf(Pot)], Annotated[Tea, FieldsOf(Tea)]


def invoke(function: Callable, *arguments: object, code: int = 0) -> str:
    """The output of a command, which ends with this code."""
    program = typer.Typer(rich_markup_mode=None)
    program.command("train", cls=ListCommand)(function)
    result = CliRunner().invoke(program, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def served(*arguments: str, fails: bool = False) -> dict:
    found: dict = {}

    @expanded
    def serve(*, pot: InPot, tea: Annotated[dict[str, Any], OF_TEA], late: bool = False) -> None:
        found.update(pot=pot, tea=tea, late=late)

    return {"output": invoke(serve, *arguments, code=2 if fails else 0)} | found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("adme in.csv --guests a b --late", (["adme", "in.csv"], ("a", "b"))),
        ("adme --guests a in.csv", (["adme", "in.csv"], ("a",))),
        ("--guests a --guests b adme in.csv", (["adme", "in.csv"], ("a", "b"))),
    ],
)
def test_an_option_behind_all_arguments_takes_all_values_that_follow_it(arguments, expected):
    found: dict = {}

    @expanded
    def serve(*, names: Annotated[list[str], typer.Argument()], tea: WithTea, late: bool = False) -> None:
        found.update(names=names, guests=tea.guests)

    invoke(serve, *arguments.split())
    assert (found["names"], found["guests"]) == expected


def test_a_command_gets_a_dataclass_and_what_was_given_of_another():
    found = served("--sugar", "3", "--no-warm", "--cut", "a:b", "--size", "6", "--late")
    assert found["pot"] == Pot(6) and found["late"] is True
    assert found["tea"] == {"sugar": 3, "warm": False, "parts": ("a", "b")}
    assert served() == {"pot": Pot(), "tea": {}, "late": False, "output": ""}


def test_help_has_the_text_and_the_default_of_each_field():
    lines = [" ".join(line.split()) for line in served("--help")["output"].splitlines()]
    assert "--sugar <int> Spoons. [default: 2]" in lines or "--sugar INTEGER Spoons. [default: 2]" in lines
    assert "--warm / --no-warm Not cold. [default: warm]" in lines and "--milk White." in lines


def test_an_option_of_several_values_takes_all_that_follow_it():
    assert served("--guests", "Ann", "Bo", "--milk", "--guests", "Cy")["tea"]["guests"] == ("Ann", "Bo", "Cy")


@pytest.mark.parametrize("given", ["--guests --late", "--late --guests --sugar 3"])
def test_an_option_is_no_value_of_the_one_before_it(given):
    output = served(*given.split(), fails=True)["output"]
    assert f"'--guests' needs a value in front of {given.split('--guests ')[1].split()[0]}: Who comes." in output
    assert served("--milk", "--late")["late"]


def test_a_wrong_value_gives_one_sentence_with_the_choices():
    output = served("--leaf", "gren", fails=True)["output"]
    assert "Invalid value for '--leaf': 'gren' is not one of 'black', 'green'; did you mean 'green'?\n" in output
    assert "'--sugar': 'two' is not a whole number.\n" in served("--sugar", "two", fails=True)["output"]


def called(*arguments: Any) -> dict:
    """What a command is called with; it keeps its options in --out."""
    found: dict = {}

    @expanded
    def learn(
        *,
        context: typer.Context,
        file: Annotated[str | None, typer.Argument()] = None,
        table: Annotated[dict[str, Any], FieldsOf(TableOptions)],
        ensemble: Annotated[EnsembleOptions, OF_ENSEMBLES],
        device: str = "auto",
        resume: bool = False,
        out: Annotated[Path, typer.Option()],
    ) -> None:
        (out / "command.json").write_text(as_command(context, {"log10": table.get("log10", ("b",))}))
        found.update(file=file, table=table, ensemble=ensemble, device=device)

    invoke(learn, *arguments)
    return found


FIRST = ("a.csv", "--target-columns", "a", "b", "--folds", 3, "--no-baseline", "--device", "cpu")


def test_options_are_those_of_the_first_call(tmp_path):
    first = called(*FIRST, "--out", tmp_path)
    again = called("--out", tmp_path, "--resume")
    assert again["table"] == first["table"] | {"log10": ("b",)}, "chosen on the terminal"
    assert (again["file"], again["ensemble"], again["device"]) == ("a.csv", EnsembleOptions(baseline=False), "auto")
    assert called(*FIRST, "--out", tmp_path, "--resume")["table"] == again["table"]
    assert called("moved.csv", "--out", tmp_path, "--resume")["file"] == "moved.csv"
    kept = json.loads((tmp_path / "command.json").read_text())
    assert "file" in kept, "what is taken up is kept again"
    assert kept["shell"].endswith(" moved.csv --target-columns a b --folds 3 --log10 b --no-baseline")


@pytest.mark.parametrize(
    ("option", "before"), [("--folds 4", "--folds .* begun with 3"), ("--final", "--final .* begun without it")]
)
def test_an_option_that_contradicts_the_first_call_is_refused(tmp_path, option, before):
    called(*FIRST, "--out", tmp_path)
    with pytest.raises(InputError, match=before):
        called(*option.split(), "--out", tmp_path, "--resume")


def test_training_goes_on_after_quick_with_new_options(tmp_path):
    called("a.csv", "--quick", "--out", tmp_path)
    assert called("--out", tmp_path, "--resume")["ensemble"].quick, "it was interrupted"
    (tmp_path / "report.html").touch()
    found = called("--out", tmp_path, "--resume", "--ensemble", 3)
    assert found["ensemble"] == EnsembleOptions(ensemble=3) and found["file"] == "a.csv"


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "command.json").write_text("[1")
    with pytest.raises(InputError, match=r"command\.json is damaged"):
        called("--out", tmp_path, "--resume")


def test_conditions_are_pairs_of_name_and_value():
    assert read_conditions(["pH=7.4", "assay=a=b"]) == {"pH": "7.4", "assay": "a=b"} and read_conditions(None) == {}
    for text in ("pH", "pH=", "=7", "pH= "):
        with pytest.raises(InputError, match=f"--condition {text}: give a name and a value"):
            read_conditions([text])
    with pytest.raises(InputError, match="--condition gives pH twice"):
        read_conditions(["pH=7", "pH=8"])


def test_a_written_table_is_a_line_for_people_and_json_for_programs(capsys):
    report_rows({"rows": 10, "unreadable": 3, "output": "out.csv", "errors": {"no": 3}}, 1.23456)
    output, messages = capsys.readouterr()
    assert messages == "out.csv: 7 of 10 rows, 3 unreadable\n"
    expected = {"rows": 10, "unreadable": 3, "output": "out.csv", "errors": {"no": 3}, "seconds": 1.235}
    assert json.loads(output) == expected
    report_rows({"rows": 1128, "unreadable": 0, "output": "-"}, 1)
    assert capsys.readouterr().err == "1,128 of 1,128 rows, 0 unreadable\n"


@pytest.mark.parametrize(
    ("is_terminal", "is_told", "expected"), [(0, 1, '{"a": 1}\n'), (1, 1, ""), (1, 0, '{\n  "a": 1\n}\n')]
)
def test_a_terminal_shows_json_only_if_nothing_else_tells_the_result(
    capsys, monkeypatch, is_terminal, is_told, expected
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: bool(is_terminal))
    print_result({"a": 1}, bool(is_told))
    assert capsys.readouterr().out == expected


def test_models_are_completed_and_files_that_begin_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zinc.csv").touch()
    (tmp_path / "other.csv").touch()
    assert model_names("zinc") == ["zinc", "zinc-subset", "zinc.csv"] and model_names("oth") == []
    assert set(model_names("")) - set(predicting_names("")) == PRETRAINED


@pytest.mark.parametrize("name", ["predict", "explain", "serve", "info", "embed"])
def test_the_shell_completes_the_model_of_a_command(name):
    command = typer.main.get_command(alone(name))
    (model,) = [each for each in command.params if each.name in ("model", "models", "model_and_input")]
    assert [each.value for each in model.shell_complete(typer.Context(command), "adm")] == ["adme", "admet"]


def table(*columns: str) -> WholeTable:
    names, row = ("smiles", "SMILES", "structure", "drug"), Row(["1" * (name != "comment") for name in columns], "C")
    return WholeTable(list(columns), [row], smiles_place=next(n for n, name in enumerate(columns) if name in names))


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (["smiles", "logD"], {}),
        (["compound_id", "logD", "SMILES"], {}),
        (["structure", "logD", "set"], {"smiles_column": "structure", "split_column": "set"}),
        (["smiles", "logD", "weight", "pH"], {"weight_column": "weight", "feature_columns": ("pH",)}),
        (["smiles", "batch", "logD"], {"id_column": "batch"}),
        (["Fragment ID", "structure", "logD", "comment"], {}),
    ],
)
def test_the_only_column_without_another_purpose_is_predicted(columns, given):
    assert only_target("a.csv", table(*columns), given) == ("logD",)


def test_several_columns_need_the_names_of_the_targets():
    with pytest.raises(InputError, match=r"\(the columns of a.csv: smiles, logD, logP\); see target_columns"):
        only_target("a.csv", table("smiles", "logD", "logP"), {})


@pytest.mark.parametrize("columns", [["smiles"], ["smiles", "id"]])
def test_a_table_without_another_column_has_nothing_to_predict(columns):
    sentence = f"^a.csv has no column to predict: its columns are {', '.join(columns)}$"
    with pytest.raises(InputError, match=sentence):
        only_target("a.csv", table(*columns), {})


def test_a_threshold_makes_a_classification_of_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,IC50_nM\nC,5\nCC,>1000\nCCC,<7\n")
    options, _ = detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, None, 0)
    assert options.kind == "classification" and options.threshold == "<100nM"
    with pytest.raises(InputError, match="--active-below"):
        detected(str(path), read_whole(str(path)), {"active_below": "100nM"}, "regression", 0)


@contextmanager
def answering(text: str) -> Iterator[Callable[[], str]]:
    """Lets somebody at a terminal type an answer; gives what the terminal shows until now."""
    terminal, own = pty.openpty()
    os.write(terminal, text.encode())
    with (
        os.fdopen(own, "r", closefd=False) as typed,
        os.fdopen(own, "w") as shown,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", typed)
        patch.setattr(sys, "stderr", shown)

        def until_now() -> str:
            print("(end)", file=shown, flush=True)
            seen = b""
            while b"(end)" not in seen:
                seen += os.read(terminal, 10_000)
            return seen.decode()

        yield until_now
    os.close(terminal)


CONCENTRATIONS = WholeTable(
    ["smiles", "Ki_nM", "S"],
    [Row(["C" * (k + 1), f"{10**k}", f"<{k}"], "C" * (k + 1)) for k in range(6)],
    smiles_place=0,
)


@pytest.mark.parametrize(
    ("typed", "given", "scales", "asks"),
    [
        ("\n", {}, ("-log10 nM", ""), True),
        ("n\n", {}, (), True),
        ("", {"negative_log_molar": ("S=uM",)}, ("", "-log10 uM"), False),
        ("", {"active_below": "100nM", "targets": ("Ki_nM",)}, (), False),
    ],
)
def test_somebody_at_a_terminal_is_asked_whether_to_learn_logarithms(typed, given, scales, asks):
    with answering(typed) as shown:
        options, _ = detected("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")} | given, None, 0)
        assert on_better_scales(options, CONCENTRATIONS).scales == scales
        seen = shown()
        assert (seen.count("Learn pKi instead?"), seen.count("Ki_nM")) == ((1, 1) if asks else (0, 0))


@pytest.mark.parametrize(
    ("name", "unit"), [("LD50 (mg/kg)", "mg/kg"), ("MIC_µg/mL", "ug/mL"), ("mg/leaf", None), ("pKi", None)]
)
def test_masses_are_pointed_out(name, unit):
    said = list(words_on_masses(TableOptions("a.csv", (name,))))
    assert bool(said) == (unit is not None) and all(f" {unit} " in each for each in said)
    assert "--log10" not in "".join(said)
    for other in ({"kind": "classification"}, {"log10": (name,)}):
        assert not list(words_on_masses(TableOptions("a.csv", (name,), **other)))


def test_nobody_is_asked_without_a_terminal():
    options, _ = detected("a.csv", CONCENTRATIONS, {"targets": ("Ki_nM", "S")}, None, 0)
    assert on_better_scales(options, CONCENTRATIONS) is options


def test_each_of_several_targets_has_a_line_and_of_many_the_best_and_the_worst():
    """Errors of 1 to 13; one target that is left out of the mean has none."""
    facts = {f"t{n}": {"n": 40, "scores": {"stack": {"mae": float(n)}}} for n in range(1, 14)}
    result = {"metric": "mae", "targets": facts, "left_out": {"t13": "too few"}}
    assert [line.partition(":")[0] for line in on_targets(result)] == [f"t{n}" for n in range(1, 13)]
    _, *lines = on_targets(result | {"left_out": {}})
    assert lines == ["t1: MAE 1.00 on 40 labels", "t13: MAE 13.0 on 40 labels"]
    assert list(on_targets(result | {"targets": {"t1": facts["t1"]}})) == []
