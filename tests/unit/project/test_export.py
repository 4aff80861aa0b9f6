"""A model as one file: the same predictions, the same bytes, and nothing of a hostile file."""

import json
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.project.export import export_model, names_only
from graphormer_sepnorm.runs import zoo
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import read_card, resolve_model
from graphormer_sepnorm.table_model.evaluate import describe_any, evaluate_table
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_run import Plan, fit_run
from tests.table_models import Trained


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
def test_an_exported_model_is_the_run_in_one_file(trained: Trained, smiles, tmp_path, command):
    code, facts, _ = command("export", trained.run.path, "-o", tmp_path / "m.gsn", "--licence", "MIT")
    assert code == 0 and facts == export_model(trained.run.path, tmp_path / "m.gsn", "MIT")
    assert command("info", tmp_path / "m.gsn")[1]["model"] == str(tmp_path / "m.gsn")
    assert facts["training_molecules"] == len(trained.labelled.rows) - trained.result["n"]
    options = {"interval": 0.8, "domain": True}
    ours, theirs = (
        load_model(each).predict(smiles[60:80], **options) for each in (trained.run.path, tmp_path / "m.gsn")
    )
    assert ours.equals(theirs)
    place = resolve_model(tmp_path / "m.gsn")
    assert evaluate_table(RunFolder(place))["value"] == trained.result["value"]
    card = read_card(place)
    assert card.licence == "MIT" and card.training_data == "in.csv"
    assert card.endpoints["a"].rmse_out_of_fold == trained.result["out_of_fold"]["stack"]["rmse"]
    assert str(tmp_path.parent) not in (place / "table.json").read_text()
    described = describe_any(place)
    assert (described["split"], described["training_data"]) == ("random, seed 0, 80:10:10", "in.csv")
    export_model(tmp_path / "m.gsn", tmp_path / "again.gsn")
    assert (tmp_path / "again.gsn").read_bytes() == (tmp_path / "m.gsn").read_bytes()


@pytest.mark.slow
def test_equal_runs_are_equal_files_without_pickles(trained: Trained, tmp_path):
    for name in ("a", "b"):
        fit_run(trained.labelled, trained.options, trained.config, RunFolder(tmp_path / name), Plan(2, quick=True))
        export_model(tmp_path / name, tmp_path / f"{name}.gsn")
    assert (tmp_path / "a.gsn").read_bytes() == (tmp_path / "b.gsn").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.gsn") as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".safetensors", ".json", ".csv"}


def test_a_file_outside_the_model_is_refused_and_nothing_is_written(tmp_path, cache):
    outside = ["../escaped.json", "/tmp/escaped.json", "model-0/../../escaped.json"]
    for name in (*outside, "code.pkl", "model-0/a.py", "x/y.json", "a.JSON/"):
        hostile(tmp_path / "m.gsn", zipfile.ZipInfo(name))
        with pytest.raises(InputError, match="is no model that export wrote"):
            resolve_model(tmp_path / "m.gsn")
        assert not list(tmp_path.parent.rglob("escaped*")) and not list(cache.iterdir())


def hostile(path: Path, info: zipfile.ZipInfo, content: bytes = b"{}") -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("stack.safetensors", b"")
        archive.writestr(info, content)


def test_links_large_files_and_files_without_a_model_are_refused(tmp_path, cache, monkeypatch):
    link = zipfile.ZipInfo("link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    hostile(tmp_path / "link.gsn", link, b"/etc/passwd")
    hostile(tmp_path / "large.gsn", zipfile.ZipInfo("test.json"), b" " * 1001)
    with zipfile.ZipFile(tmp_path / "other.gsn", "w") as archive:
        archive.writestr("test.json", "{}")
    (tmp_path / "text.gsn").write_text("no archive")
    monkeypatch.setattr(zoo, "MOST_BYTES", 1000)
    for name, reason in {"link": "link.json", "large": "GB", "other": "no stack", "text": "damaged"}.items():
        with pytest.raises(InputError, match=reason):
            resolve_model(tmp_path / f"{name}.gsn")
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.slow
def test_a_damaged_file_is_refused(trained: Trained, tmp_path):
    export_model(trained.run.path, tmp_path / "m.gsn")
    content = (tmp_path / "m.gsn").read_bytes()
    for place in (len(content) // 100, len(content) // 2, int(0.999 * len(content))):
        changed = content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
        for damaged in (changed, content[:place]):
            (tmp_path / "m.gsn").write_bytes(damaged)
            with pytest.raises(InputError):
                load_model(tmp_path / "m.gsn")


@pytest.mark.slow
def test_what_is_no_finished_table_model_is_not_exported(trained: Trained, tmp_path):
    with pytest.raises(InputError, match=r"ends in \.gsn"):
        export_model(trained.run.path, tmp_path / "m.zip")
    with pytest.raises(InputError, match="no table model"):
        export_model(trained.run.member(0).path, tmp_path / "m.gsn")
    shutil.copytree(trained.run.path, tmp_path / "run")
    (tmp_path / "run" / "table.csv").write_text("other")
    with pytest.raises(InputError, match=r"table\.csv is damaged"):
        export_model(tmp_path / "run", tmp_path / "m.gsn")
    assert not (tmp_path / "m.gsn").exists()


@pytest.mark.slow
def test_units_and_transforms_are_told(trained: Trained, tmp_path):
    shutil.copytree(trained.run.path, tmp_path / "run")
    table = tmp_path / "run" / "table.json"
    facts = json.loads(table.read_text())
    facts["options"] |= {"units": ["nM"], "negative_log_molar": ["nM"]}
    table.write_text(json.dumps(facts))
    described = describe_any(tmp_path / "run")
    assert (described["units"], described["transforms"]) == (["a in nM"], ["-log10 nM of a"])
    export_model(tmp_path / "run", tmp_path / "m.gsn")
    assert read_card(resolve_model(tmp_path / "m.gsn")).endpoints["a"].description == "a in nM"
    assert names_only("some/a.csv, b.csv") == "a.csv, b.csv"
