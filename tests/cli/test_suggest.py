"""The command ``suggest``."""

import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

import graphormer_sepnorm
import graphormer_sepnorm.library
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.interfaces.commands import suggest
from graphormer_sepnorm.interfaces.commands.suggest import lines_on_others
from tests.tiny import save_tiny, save_two


@pytest.mark.slow
def test_molecules_are_suggested_from_the_shell(command, tmp_path):
    save_two(tmp_path / "model")
    sample_table()[:30].to_csv(tmp_path / "library.csv", index=False)
    out = tmp_path / "next.xlsx"
    arguments = [
        "-n",
        4,
        "--by",
        "expected-improvement",
        "--best",
        0.5,
        "--minimize",
        "--alerts",
        "--workers",
        1,
        "-o",
        out,
    ]
    code, result, _ = command("suggest", tmp_path / "model", tmp_path / "library.csv", *arguments)
    assert code == 0 and (result["suggested"], result["rows"], result["best"]) == (4, 30, 0.5)
    found = pd.read_excel(out)
    assert found["rank"].tolist() == [1, 2, 3, 4] and {"logp", "logp_std", "alerts"} < set(found)
    assert found.expected_improvement.is_monotonic_decreasing and set(found.smiles) < set(sample_table().smiles)
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["-o", "-"]])
def test_without_a_file_molecules_are_printed(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\nCCO\n")
    asked = ["suggest", "model", "library.csv", "--by", "prediction", "-n", "2", "--workers", "1"]
    written = CliRunner().invoke(commands.app, [*asked, "-o", "next.csv"])
    printed = CliRunner().invoke(commands.app, [*asked, *arguments])
    assert written.exit_code == printed.exit_code == 0
    assert printed.stdout == (tmp_path / "next.csv").read_text() and "rank" in printed.stdout
    assert printed.stderr.endswith("2 molecules of 2 rows\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "model", "next.csv"]
    monkeypatch.setattr(suggest, "is_for_people", lambda out: True)
    lines = CliRunner().invoke(commands.app, asked).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["rank", "1", "2"] and lines[0].split() == ["rank", "SMILES", "logp"]
    assert {line.split()[1] for line in lines[1:]} == {"C", "CCO"}


@pytest.mark.slow
def test_a_terminal_shows_the_first_molecules_and_how_to_get_the_others(tmp_path, monkeypatch):
    save_two(tmp_path / "model", kind="classification")
    sample_table()[["smiles"]][:30].assign(compound_id=range(30)).to_csv(tmp_path / "library.csv", index=False)
    monkeypatch.setattr(suggest, "is_for_people", lambda out: True)
    asked = ["suggest", str(tmp_path / "model"), str(tmp_path / "library.csv"), "-n", "12", "--workers", "1"]
    shown = CliRunner().invoke(commands.app, asked)
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["rank", "compound_id", "SMILES", "logp", "logp_std"] and len(lines) == 11
    probabilities = [float(line.split()[3]) for line in lines[1:]]
    assert probabilities == sorted(probabilities, reverse=True) and "0." in lines[1]
    assert "ranked by the predicted probability (--by prediction)" in shown.stderr
    assert "shown: the first 10; -o FILE writes all of them, with all columns\n" in shown.stderr


@pytest.mark.slow
def test_fewer_molecules_than_asked_for_are_said(command, tmp_path):
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\nCC\nC\nC[\n")
    out = tmp_path / "next.csv"
    for count in (2, 50):
        arguments = ["-n", count, "--by", "prediction", "--workers", 1, "-o", out]
        code, result, messages = command("suggest", tmp_path / "model", tmp_path / "library.csv", *arguments)
        assert code == 0 and result["suggested"] == 2 and "2 molecules of 4 rows, 1 row unreadable" in messages
        assert "computing in" not in messages
        assert ("these are all: -n 50 is more than the library has" in messages) == (count == 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["library.csv", "--scheduler", "tcp://x", "-o", "-"], "with --scheduler, name the output: -o OUT.csv"),
        (["library.csv", "-n", "0"], "-n 0: ask for one molecule or more"),
        (["library.csv", "--target", "mass"], "--target mass is not a target of the model, which predicts logp"),
        (["library.csv", "--target", "log_p"], "predicts logp; did you mean 'logp'?"),
        (["library.csv"], "needs a model that estimates its errors"),
        (["none.csv", "--by", "prediction"], "there are no files none.csv"),
        (["library.csv", "-o", "next.txt"], "a table is written as .csv, .tsv, .parquet, .xlsx, .sdf, not as '.txt'"),
    ],
)
def test_bad_input_is_one_sentence(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\n")
    code, _, messages = command("suggest", "model", *arguments, *([] if "-o" in arguments else ["-o", "next.csv"]))
    assert code == 2 and message in messages and messages.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.csv", "model"]


def test_without_pyarrow_the_command_says_how_to_install_it(command, tmp_path, monkeypatch):
    save_tiny(tmp_path / "model")
    (tmp_path / "library.csv").write_text("smiles\nC\n")
    hidden = [name for name in sys.modules if name.startswith("graphormer_sepnorm.library")]
    monkeypatch.setattr(graphormer_sepnorm, "library", graphormer_sepnorm.library)  # imports replace it
    for name in [*hidden, "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None) if name == "pyarrow" else monkeypatch.delitem(sys.modules, name)
    code, _, messages = command("suggest", tmp_path / "model", tmp_path / "library.csv", "-o", tmp_path / "next.csv")
    assert code == 2 and not (tmp_path / "next.csv").exists()
    assert messages.endswith(
        'suggest needs pyarrow, which is not installed: run pip install ".[scale]" in the folder of the repository\n'
    )


def test_molecules_left_out_ranked_last_or_unlike_the_training_molecules_are_counted():
    result = {
        "suggested": 50,
        "left_out": 1,
        "put_last": 12,
        "suggested_last": 3,
        "unlike": 7,
        "usual_similarity": 0.34,
    }
    left_out, last, unlike = lines_on_others(result)
    assert left_out.endswith(": 1") and last.endswith(": 12, of which 3 are suggested")
    assert "below 0.34" in unlike and "7 of 50" in unlike
    assert not list(lines_on_others(dict.fromkeys(result, 0)))
