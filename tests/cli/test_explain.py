"""The command that draws explanations, on a model of one layer."""

import json

import pytest
from typer.testing import CliRunner

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import commands
from tests.unit.explain.test_explanations import make_model


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("model")
    make_model().save_pretrained(folder)
    return str(folder)


def explain(*arguments) -> list[dict]:
    """Runs the command in this process; returns its JSON."""
    result = CliRunner().invoke(commands.app, ["explain", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("method", ["gradients", "attention"])
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_one_molecule(saved, tmp_path, ending, method):
    picture = tmp_path / f"ethanol{ending}"
    (explanation,) = explain(saved, "CCO", "-o", picture, "--method", method)
    assert explanation["smiles"] == "CCO" and len(explanation["contributions"]) == 3
    assert picture.stat().st_size > 1000


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "molecules.csv"
    path.write_text(
        "\ufeffname,smiles\r\nethanol,CCO\r\nbroken,C(C\r\n,\r\nCCC\r\n'a, b',c1ccccc1\r\n".replace("'", '"')
    )
    return path


def test_a_table_into_a_folder(saved, table, tmp_path):
    explain(saved, table, "-o", tmp_path / "pictures")
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["00001-ethanol.svg", "00005-a_b.svg"]


def test_the_rows_left_out_are_named(saved, table, tmp_path):
    result = CliRunner().invoke(commands.app, ["explain", saved, str(table), "-o", str(tmp_path / "x.svg")])
    assert result.exit_code == 0
    assert all(f"row {row} (counted from 1): " in result.stderr for row in (2, 3, 4))
    assert len(json.loads(result.stdout)) == 2  # nothing else


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["C(C", "-o", "x.svg"], "'C(C' is not a valid SMILES"),
        (["typo.csv"], "name what to write for a table: -o PICTURES"),
        (["typo.csv", "-o", "x.svg"], "cannot read typo.csv: No such file"),
        (["C", "-o", "x.pdf"], "must end in .svg, .png or .csv"),
        (["C", "-o", "x.svg", "--method", "y"], "choose one of gradients, attention"),
        (["C", "-o", "x.svg", "--target", "y"], "choose one of a, b"),
    ],
)
def test_bad_input_writes_nothing(saved, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=problem.replace("(", r"\(")):
        explain(saved, *arguments)
    assert list(tmp_path.iterdir()) == []
