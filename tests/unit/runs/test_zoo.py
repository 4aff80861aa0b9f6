import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.zoo import (
    assay_limits,
    card_endpoints,
    card_facts,
    point,
    resolve_model,
    shipped_models,
    shipped_tables,
    table_rows,
)


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
    with pytest.raises(InputError, match=r"nowhere is neither a run folder.*\(adme, ogbg-molhiv, zinc, zinc-subset; f"):
        resolve_model("nowhere")
    with pytest.raises(InputError, match=r"; for fine-tuning foundation, foundation-mini\); did you mean 'adme'\?$"):
        resolve_model("adm")


def test_a_table_is_not_read_as_weights(tmp_path):
    (tmp_path / "a.csv").write_text("smiles\nC\n")
    with pytest.raises(InputError, match=r"a\.csv is a table, not a model: name a run folder, a weights file or a"):
        resolve_model(tmp_path / "a.csv")


def test_a_misspelt_run_folder_is_recognized(tmp_path):
    for name, content in {"esol": ["stack.safetensors"], "zinc": ["model.safetensors"], "eslos": []}.items():
        (tmp_path / name).mkdir()
        for each in content:
            (tmp_path / name / each).touch()
    for wrong, meant in {"eslo": "esol", "zink": "zinc"}.items():
        with pytest.raises(InputError, match=rf"\); did you mean '{tmp_path / meant}'\?$"):
            resolve_model(tmp_path / wrong)
    for wrong in (tmp_path / "herg", tmp_path / "nowhere" / "esol"):
        with pytest.raises(InputError, match=r"foundation-mini\)$"):
            resolve_model(wrong)


def test_a_table_model_is_unpacked_once_into_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path))
    folder = resolve_model("adme")
    assert folder.parent == tmp_path and RunFolder(folder).stack.is_file()
    (folder / "kept").touch()
    assert resolve_model("adme") == folder and (folder / "kept").exists()
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_the_cards_of_table_models_state_data_and_licence(tmp_path, monkeypatch):
    for name in shipped_tables():
        facts = card_facts(name)
        assert facts.keys() == {"training_data", "licence"} and all(facts.values()) and "**" not in str(facts)
    assert "Fang et al." in card_facts("adme")["training_data"] and card_facts("adme")["licence"].startswith(
        "MIT. The data"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adme").mkdir()
    assert card_facts("adme") == card_facts("zinc") == {}


def test_the_cards_of_table_models_describe_every_endpoint(tmp_path, monkeypatch):
    for name in shipped_tables():
        endpoints = card_endpoints(name)
        assert endpoints and all(known["description"] and "|" not in str(known) for known in endpoints.values())
    found = card_endpoints("adme")
    assert list(found) == ["HLM", "MDR1_ER", "RLM", "Sol", "hPPB", "rPPB"]
    assert found["HLM"]["description"] == "log10 of human liver microsomal clearance, mL/min/kg"
    limits = {target: facts["limit"] for target, facts in found.items() if "limit" in facts}
    assert limits == {"HLM": "0.8 or less", "RLM": "1.15 or less", "Sol": "110 uM or more"}
    assert assay_limits(resolve_model("adme")) == limits and assay_limits(tmp_path / "adme-1") == {}
    assert found["HLM"]["molecules"] == 3086 and 0.3 < found["HLM"]["rmse_out_of_fold"] < 0.5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adme").mkdir()
    assert card_endpoints("adme") == card_endpoints("zinc") == {}


def test_only_the_table_of_endpoints_is_read():
    points = "- **Units**: all\n  of it.\n- **Scores**: x\n\n| a |\n|---|\n| 1 |\n\n"
    card = f"{points}| endpoint | column |\n|---|---|\n| b, c | `d` |\nend |"
    assert table_rows(card, "endpoint") == [{"endpoint": "b, c", "column": "`d`"}]
    assert point(card, "Units") == "all of it." and point(card, "Licence") == ""
