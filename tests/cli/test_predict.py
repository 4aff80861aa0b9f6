"""The commands on unmeasured molecules: predict, suggest and explain."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.output import resumable_writer
from graphormer_sepnorm.table_model.load import load_models
from tests.several import save_panel, save_student
from tests.tables import records, write
from tests.tiny import save_tiny, save_two


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model"))


@pytest.mark.slow
def test_several_models_and_endpoints_from_the_shell(command, tmp_path):
    names = save_panel(tmp_path / "panel"), save_student(tmp_path / "potency", ("hERG",), seed=1)
    asked = "--endpoints", "herg", "tox*", "--interval", "0.8", "-o", tmp_path / "out.csv"
    code, _, _ = command("predict", *names, "CCO", "CCCCO", *asked)
    assert code == 0
    found = load_models(names).predict(["CCO", "CCCCO"], interval=0.8, endpoints=["hERG", "tox*"])
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert list(written) == list(found) and {"toxic_set", "panel_hERG", "potency_hERG_low"} <= set(found)
    numbers = found.select_dtypes("number").columns
    np.testing.assert_allclose(written[numbers], found[numbers], rtol=1e-5, atol=1e-7)
    assert command("predict", *names, "CCO", "--endpoints", "none")[0] == 2
    assert command("info", names[0])[1]["endpoints"]["hERG"]["direction"] == "lower"


@pytest.mark.slow
def test_a_table_with_one_per_cent_broken_rows_is_complete_and_aligned(command, model, tmp_path, monkeypatch):
    monkeypatch.setattr(resumable_writer, "molecules_at_once", lambda device: 150)
    rng = random.Random(0)
    smiles = list(sample_table().smiles[:1000])
    broken = sorted(rng.sample(range(1000), 10))
    texts = ["", "C[C", "x", "C(C)(C)(C)(C)C", "[Xx]", "C1CC", "é", "C C", "))", "1"]
    for row, text in zip(broken, texts, strict=True):
        smiles[row] = text
    pd.DataFrame({"id": [f"{i:05d}" for i in range(1000)], "smiles": smiles}).to_csv(tmp_path / "in.csv", index=False)
    code, result, messages = command("predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    rows = records(tmp_path / "out.csv")
    assert code == 0 and (result["rows"], result["unreadable"]) == (1000, 10) and "10 unreadable" in messages
    assert [row["id"] for row in rows] == [f"{i:05d}" for i in range(1000)]
    assert [row["smiles"] for row in rows] == smiles
    assert [i for i, row in enumerate(rows) if row["error"]] == broken
    assert [i for i, row in enumerate(rows) if not row["logp"]] == broken
    assert [f"row {row + 2} (" in messages for row in broken] == [True] * 5 + [False] * 5


@pytest.mark.parametrize("name", ["predict", "embed"])
def test_the_input_is_not_overwritten(command, model, tmp_path, name):
    (tmp_path / "in.csv").write_text("smiles\nC\n")
    code, _, messages = command(name, model, tmp_path / "in.csv", "-o", tmp_path / "in.csv")
    assert code == 2 and "is the input" in messages and (tmp_path / "in.csv").read_text() == "smiles\nC\n"


@pytest.mark.slow
def test_a_pipe_is_read_to_its_end(model, tmp_path):
    """1,500 rows, of which a pipe holds but a part at a time."""
    rows = "".join(f"CCO,{number}\n" for number in range(1500))
    (tmp_path / "in.csv").write_text("smiles,number\n" + rows)
    predict = f"{sys.executable} -c 'from graphormer_sepnorm.interfaces.cli import main; main()' predict {model}"
    line = f"{predict} <(cat {tmp_path}/in.csv) -o {tmp_path}/out.csv"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row["number"] for row in records(tmp_path / "out.csv")] == [str(number) for number in range(1500)]
    done = subprocess.run(["bash", "-c", f"{line} --resume"], capture_output=True, text=True)
    assert done.returncode == 2 and "cannot be resumed" in done.stderr


@pytest.mark.slow
def test_smiles_are_predicted_and_printed(command, model, tmp_path):
    smiles = ["CCO", "c1ccccc1O ", "F/C=C/F"]
    table = str(write(tmp_path, "in.csv", "\n".join(["smiles", *smiles]) + "\n"))
    command("predict", model, table, "-o", tmp_path / "out.csv")
    rows = records(tmp_path / "out.csv")
    assert list(rows[0]) == ["smiles", "logp", "error"] and [row["smiles"] for row in rows] == smiles
    for arguments in (smiles, [table, "-o", "-"]):
        printed = CliRunner().invoke(commands.app, ["predict", str(model), *arguments])
        assert printed.exit_code == 0 and "3 of 3 rows" in printed.stderr
        assert printed.stdout == (tmp_path / "out.csv").read_text()
    assert command("predict", model, model, *smiles, "-o", tmp_path / "two.csv")[0] == 0
    assert [row["logp_std"] for row in records(tmp_path / "two.csv")] == ["0"] * 3


@pytest.mark.slow
def test_a_reader_that_has_enough_is_a_sentence(model, tmp_path):
    sample_table().to_csv(tmp_path / "in.csv", index=False)
    predict = f"{sys.executable} -c 'from graphormer_sepnorm.interfaces.cli import main; main()' predict {model}"
    line = f"{predict} {tmp_path}/in.csv -o - | head -n 2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.stdout.count("\n") == 2 and done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: cannot write -: Broken pipe"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict", "embed"])
def test_salts_are_stripped_if_that_is_asked_for(command, model, tmp_path, name):
    def run(smiles: str, *options) -> dict:
        (tmp_path / "in.csv").write_text(f"smiles\n{smiles}\n")
        assert command(name, model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", *options)[0] == 0
        (row,) = records(tmp_path / "out.csv")
        assert row.pop("smiles") == smiles
        return row

    acetate = run("CC(=O)[O-]")
    assert run("CC(=O)[O-].[Na+]", "--strip-salts") == acetate != run("CC(=O)[O-].[Na+]")


def test_info_of_the_cache(command, model, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path))
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE_GB", "1.5")
    store = tmp_path / f"some-store-{'0' * 16}"
    store.mkdir()
    (store / "shard").write_bytes(b"12345")
    code, facts, messages = command("info", "--cache")
    assert store.name in messages
    assert code == 0 and facts["entries"] == 1 and facts["bytes"] >= 5 and facts["limit"] == 1_500_000_000
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE_GB", "inf")
    assert command("info", "--cache")[1]["limit"] is None
    for wrong, end in ((["info"], ""), (["info", model, "--cache"], ", and not both")):
        code, _, messages = command(*wrong)
        assert code == 2 and messages == f"error: name a model, or give --cache{end}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["broken.csv", "--strict", "-o", "new/out.csv"], "row 3 cannot be read: 'C[C' is not"),
        (["in.csv", "--smiles-column", "mol", "-o", "new/out.csv"], "no column 'mol': name one, or the character"),
        (["typo.csv", "-o", "there.csv"], "No such file"),
        (["in.csv", "-o", "folder.csv"], "is a folder"),
        (["in.csv", "--keep-top", "5", "-o", "out.csv"], "error: --keep-top is for a library"),
        (["in.csv", "--workers", "2", "--scheduler", "tcp://x:1", "-o", "o.csv"], "--scheduler, --workers are for a l"),
        (["library/a.parquet", "library/b.parquet", "-o", "out.csv"], "library/a.parquet is a table, not a model"),
        (["in.csv", "-o", "-", "--resume"], "what goes to standard output cannot be resumed"),
        (["in.csv"], "name the file to write: -o OUT.csv, or -o - for standard output"),
        (["suggest", "in.csv", "--scheduler", "tcp://x", "-o", "-"], "with --scheduler, name the output: -o OUT.csv"),
        (["suggest", "in.csv", "--target", "log_p", "-o", "o.csv"], "choose one of logp; did you mean 'logp'?"),
        (["explain", "typo.csv"], "name what to write for a table: -o PICTURES"),
        (["explain", "typo.csv", "-o", "x.svg"], "cannot read typo.csv: No such file"),
        (["explain", "C", "-o", "x.svg", "--method", "y"], "choose one of gradients, attention"),
        (["explain", "C", "-o", "x.svg", "--target", "y"], "unknown target 'y'"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(command, model, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for name, text in {"in.csv": "smiles\nC\n", "broken.csv": "smiles\nC\nC[C\n", "there.csv": "before"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.iterdir())
    name, *rest = arguments if arguments[0] in ("suggest", "explain") else ("predict", *arguments)
    code, _, messages = command(name, model, *rest)
    assert code == 2 and message in messages and messages.count("\n") == 1
    assert sorted(path for path in tmp_path.rglob("*") if path.name != "new") == before
    assert (tmp_path / "there.csv").read_text() == "before"


@pytest.mark.slow
def test_molecules_are_suggested_from_the_shell(command, tmp_path):
    save_two(tmp_path / "model")
    sample_table()[:30].to_csv(tmp_path / "library.csv", index=False)
    out = tmp_path / "next.xlsx"
    arguments = ["-n", 4, "--by", "expected-improvement", "--best", 0.5, "--minimize", "--alerts", "--workers", 1]
    arguments += ["-o", out]
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


@pytest.mark.slow
@pytest.mark.parametrize(("method", "ending"), [("gradients", ".svg"), ("attention", ".png")])
def test_one_molecule_is_explained(command, model, tmp_path, ending, method):
    picture = tmp_path / f"ethanol{ending}"
    code, (explanation,), _ = command("explain", model, "CCO", "-o", picture, "--method", method)
    assert code == 0 and explanation["smiles"] == "CCO" and len(explanation["contributions"]) == 3
    assert picture.stat().st_size > 1000


@pytest.mark.slow
def test_a_table_into_a_folder_and_the_rows_left_out_named(command, model, tmp_path):
    lines = '\ufeffname,smiles\r\nethanol,CCO\r\nbroken,C(C\r\n,\r\nCCC\r\n"a, b",c1ccccc1\r\n'
    table = write(tmp_path, "molecules.csv", lines)
    code, result, messages = command("explain", model, table, "-o", tmp_path / "pictures")
    assert code == 0 and len(result) == 2
    assert all(f"row {row} (counted from 1): " in messages for row in (2, 3, 4))
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["00001-ethanol.svg", "00005-a_b.svg"]
