import json

import pytest
import typer

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands import alone
from graphormer_sepnorm.interfaces.commands.shared import (
    model_names,
    predicting_names,
    print_result,
    read_conditions,
    report_rows,
)
from graphormer_sepnorm.runs.zoo import PRETRAINED


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
