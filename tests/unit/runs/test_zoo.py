import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.zoo import resolve_model, shipped_models


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
