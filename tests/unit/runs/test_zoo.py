import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import resolve_model, shipped_models, shipped_tables


def test_weights_are_shipped_by_name_each_with_its_card():
    models = shipped_models()
    assert {"zinc", "zinc-subset", "ogbg-molhiv"} <= models.keys()
    assert all(path.suffix == ".safetensors" and path.with_suffix(".md").is_file() for path in models.values())


def test_a_path_goes_before_a_name(tmp_path, monkeypatch):
    assert resolve_model("zinc") == shipped_models()["zinc"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zinc").mkdir()
    assert resolve_model("zinc").resolve() == tmp_path / "zinc"


def test_an_unknown_model_is_refused_with_the_known_names():
    with pytest.raises(InputError, match=r"nowhere is neither a run folder.*\(.*ogbg-molhiv, .*zinc, zinc-subset\)"):
        resolve_model("nowhere")


def test_a_table_model_is_unpacked_once_into_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path))
    folder = resolve_model("adme")
    assert folder.parent == tmp_path and RunFolder(folder).stack.is_file()
    (folder / "kept").touch()
    assert resolve_model("adme") == folder and (folder / "kept").exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_table_models_have_cards():
    assert all((path.parent / f"{name}.md").is_file() for name, path in shipped_tables().items())
