"""A training that is continued has the options of the call that began it."""

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.expanding import FieldsOf, ListCommand, as_command, expanded
from graphormer_sepnorm.interfaces.commands.train import OF_ENSEMBLES, EnsembleOptions
from graphormer_sepnorm.tables.options import TableOptions


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

    program = typer.Typer(rich_markup_mode=None)
    program.command(cls=ListCommand)(learn)
    result = CliRunner().invoke(program, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


FIRST = ("a.csv", "--target-columns", "a", "b", "--folds", 3, "--no-baseline", "--device", "cpu")


def test_options_are_those_of_the_first_call(tmp_path):
    first = called(*FIRST, "--out", tmp_path)
    again = called("--out", tmp_path, "--resume")
    assert again["table"] == first["table"] | {"log10": ("b",)}, "chosen on the terminal"
    assert (again["file"], again["ensemble"], again["device"]) == ("a.csv", EnsembleOptions(baseline=False), "auto")
    assert called(*FIRST, "--out", tmp_path, "--resume")["table"] == again["table"]
    assert called("moved.csv", "--out", tmp_path, "--resume")["file"] == "moved.csv"
    assert "file" in json.loads((tmp_path / "command.json").read_text()), "what is taken up is kept again"


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
