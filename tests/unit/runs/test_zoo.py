import importlib.util
import json
import os
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.runs import zoo
from graphormer_sepnorm.runs.folder import PARTS, Parts, RunFolder, weights_file
from graphormer_sepnorm.runs.zoo import (
    DIGESTS,
    card_endpoints,
    card_facts,
    read_card,
    resolve_model,
    shipped_models,
    shipped_tables,
)
from graphormer_sepnorm.table_model.load import load_model, load_predicting_model
from tests.tiny import save_tiny, tiny_model

REPOSITORY = Path(__file__).parents[3]


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
    with pytest.raises(InputError, match=r"no file or folder nowhere,.*\(adme, admet, ogbg-molhiv, zinc, zinc-s"):
        resolve_model("nowhere")
    with pytest.raises(InputError, match=r"; for fine-tuning foundation, foundation-mini\); did you mean 'adme'\?$"):
        resolve_model("adm")


def test_a_misspelt_run_folder_is_recognized(tmp_path):
    for name, content in {"esol": ["stack.safetensors"], "zinc": ["model.safetensors"], "eslos": []}.items():
        (tmp_path / "logd.gsn").touch()
        (tmp_path / name).mkdir()
        for each in content:
            (tmp_path / name / each).touch()
    for wrong, meant in {"eslo": "esol", "zink": "zinc", "logd.gsm": "logd.gsn"}.items():
        with pytest.raises(InputError, match=rf"\); did you mean '{tmp_path / meant}'\?$"):
            resolve_model(tmp_path / wrong)
    for wrong in (tmp_path / "herg", tmp_path / "nowhere" / "esol"):
        with pytest.raises(InputError, match=r"foundation-mini\)$"):
            resolve_model(wrong)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache, and a shipped table model of two small files in place of ``adme``."""
    resources = tmp_path / "resources"
    resources.mkdir()
    (tmp_path / "stack.safetensors").write_bytes(b"stack")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with tarfile.open(resources / "small.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "stack.safetensors", "stack.safetensors")
        archive.add(tmp_path / "model.safetensors", "model-0/model.safetensors")
    (resources / "small.json").write_text('{"training_data": "all", "licence": "MIT"}')
    monkeypatch.setattr(zoo, "resource_files", lambda: list(resources.iterdir()))
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_table_model_is_unpacked_once_into_the_cache(cache, capsys):
    folder = resolve_model("small")
    assert folder.parent == cache and RunFolder(folder).stack.read_bytes() == b"stack"
    assert card_facts(folder) == {"training_data": "all", "licence": "MIT"}
    (folder / "kept").touch()
    assert resolve_model("small") == folder and (folder / "kept").exists()
    assert [path.name for path in cache.iterdir()] == [folder.name] and capsys.readouterr().err == ""


DAMAGE = {
    "cut": lambda folder: os.truncate(folder / "stack.safetensors", 2),
    "flipped": lambda folder: (folder / "model-0" / "model.safetensors").write_bytes(b"weightz"),
    "missing": lambda folder: (folder / "stack.safetensors").unlink(),
    "without card": lambda folder: (folder / "card.json").unlink(),
    "without digests": lambda folder: (folder / DIGESTS).unlink(),
    "digests of nothing": lambda folder: (folder / DIGESTS).write_text("{}"),
    "no digests": lambda folder: (folder / DIGESTS).write_text("[" * 10**5),
    "a file": lambda folder: (shutil.rmtree(folder), folder.write_bytes(b"")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_unpacked_again_and_said(cache, capsys, damage):
    folder = resolve_model("small")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    DAMAGE[damage](folder)
    assert resolve_model("small") == folder and str(folder) in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert resolve_model("small") == folder and capsys.readouterr().err == ""


def test_a_damaged_archive_is_named(cache):
    archive = shipped_tables()["small"]
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(InputError, match=r"cannot unpack small\.tar\.xz"):
        resolve_model("small")
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_the_cards_of_table_models_describe_every_endpoint():
    found = card_endpoints(resolve_model("adme"))
    assert list(found) == ["HLM", "MDR1_ER", "RLM", "Sol", "hPPB", "rPPB"]
    assert found["HLM"]["description"] == "log10 of human liver microsomal clearance, mL/min/kg"
    assert found["HLM"]["molecules"] == 3086 and 0.3 < found["HLM"]["rmse_out_of_fold"] < 0.5


def test_the_markdown_of_a_card_is_made_from_it():
    spec = importlib.util.spec_from_file_location("make_cards", REPOSITORY / "data" / "make_cards.py")
    make_cards = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_cards)
    texts = make_cards.card_texts()
    assert texts and all(path.read_text(encoding="utf-8") == text for path, text in texts.items())


@pytest.mark.parametrize("text", ["", "[]", '{"licence": "MIT"}', '{"training_data": "", "licence": "", "x": 1}'])
def test_what_is_no_card_is_named(tmp_path, text):
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(InputError, match=r"card\.json is not a card: "):
        read_card(tmp_path)


ASPIRIN, LOPERAMIDE = "CC(=O)Oc1ccccc1C(=O)O", "CN(C)C(=O)C(CCN1CCC(O)(c2ccc(Cl)cc2)CC1)(c1ccccc1)c1ccccc1"


@pytest.mark.slow
def test_the_card_describes_the_targets_of_the_model_in_their_order():
    found = card_endpoints(resolve_model("admet"))
    assert list(found) == list(load_predicting_model(["admet"]).targets) and len(found) == 43
    assert {facts["licence"] for facts in found.values()} == {"CC BY 4.0", "MIT", "public domain"}
    groups = list(dict.fromkeys(facts["group"] for facts in found.values()))
    assert groups == ["Physical chemistry", "Absorption", "Distribution", "Metabolism", "Excretion", "Toxicity"]
    assert all(facts["source"] and facts["trust"] and facts["molecules"] > 200 for facts in found.values())
    models = load_predicting_model(["admet"]).part_models
    shares = {
        target: np.nanmean(labels)
        for model in models
        if model.kind == "classification"
        for target, labels in zip(model.targets, model.trust.rows.labels.T, strict=True)
    }
    known = {target: facts["positives"] for target, facts in found.items() if "positives" in facts}
    assert known == pytest.approx(shares, abs=6e-4)
    limits = {target: facts["limit"] for target, facts in found.items() if "limit" in facts}
    assert limits == {"Sol": "110 uM or more", "HLM": "0.8 or less", "RLM": "1.15 or less"}


@pytest.mark.slow
def test_the_panel_predicts_what_is_known_of_two_drugs():
    found = load_model("admet").predict([ASPIRIN, LOPERAMIDE])
    assert found.Sol_limit[0] == "near the upper limit of the assay: read as at least"
    assert found.hERG[1] > 0.5 > found.hERG[0]
    drugs = found.filter(like="_drug_percentile")
    assert drugs.shape == (2, 43) and ((drugs >= 0) & (drugs <= 100)).all(axis=None)


@pytest.mark.slow
def test_each_endpoint_warns_of_what_its_own_molecules_lack():
    """Titanium dioxide was measured for LogS, and no molecule with titanium for hERG; aspirin is like those of both."""
    only, both = (
        load_model("admet").predict(["O=[Ti]=O", ASPIRIN], domain=True, endpoints=endpoints)
        for endpoints in (["LogS"], ["LogS", "hERG"])
    )
    assert only.warning.tolist() == ["", ""] and both.similarity[0] == 1 and both.warning[1] == ""
    assert both.warning[0].startswith("hERG: No training molecule contains Ti.")


@pytest.mark.slow
def test_logarithms_below_zero_are_no_mistake(tmp_path):
    """All labels of CL_microsome are logarithms above 0; that of 0.7 uL/min/mg is below."""
    made = predict_table(load_predicting_model(["admet"]), [ASPIRIN], tmp_path / "out.csv", answers=Answers(0.9))
    assert set(made["below_zero"]) == {"PPB", "PPB_low"}


def test_the_models_of_an_ensemble_are_those_of_its_record(tmp_path):
    """Not those in the folder: one may not have been trained yet, and another may belong to something else."""
    run = RunFolder(tmp_path)
    assert run.parts() is None and run.members() == []
    run.begin_parts(Parts("model", 2))
    for number in (0, 2):
        (tmp_path / f"model-{number}").mkdir()
    assert run.parts() == Parts("model", 2)
    assert [member.path for member in run.members()] == [tmp_path / "model-0", tmp_path / "model-1"]
    with pytest.raises(InputError, match=r"it holds networks, name one of them, such as .*model-0"):
        weights_file(tmp_path)
    assert json.loads(run.record.read_text()) == {"kind": "model", "count": 2}
    run.begin_parts(Parts("model", 2))
    run.record.write_text('{"kind": "model", "count": 0}')
    with pytest.raises(InputError, match=r"parts\.json is damaged"):
        run.members()


@pytest.mark.parametrize(
    ("held", "asked", "sentence"),
    [
        (Parts("model", 3), Parts("model", 2), "holds 3 networks: continue with --ensemble 3, or choose"),
        (Parts("model", 2), Parts("fold", 2), "holds 2 networks: continue with --ensemble 2, or choose"),
        (Parts("fold", 5), Parts("fold", 3), "holds 5 folds: continue with --folds 5, or choose another --out"),
    ],
)
def test_only_the_same_parts_can_be_continued(tmp_path, held, asked, sentence):
    run = RunFolder(tmp_path)
    run.begin_parts(held)
    for check in (run.check_parts, run.begin_parts):
        with pytest.raises(InputError, match=sentence):
            check(asked)
    for resume in (False, True):
        with pytest.raises(InputError, match=f"holds {str(held).partition(':')[0]}"):
            run.check_free(resume)
    run.check_parts(held)


def test_one_model_is_a_run_folder_or_its_weights_file(tmp_path):
    save_tiny(tmp_path)
    weights = tmp_path / "model.safetensors"
    assert weights_file(tmp_path) == weights_file(weights) == weights
    assert RunFolder.around(tmp_path).path == RunFolder.around(weights).path == tmp_path
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is not a folder that train wrote: it has no model\.safetensors$"):
        weights_file(tmp_path / "empty")
    for name in ("several/r", "several/q"):
        save_tiny(tmp_path / name)
    with pytest.raises(InputError, match=r"it holds runs, name one of them, such as .*/q$"):
        weights_file(tmp_path / "several")


def test_a_later_epoch_replaces_what_an_interrupted_run_wrote_of_it(tmp_path):
    run = RunFolder(tmp_path)
    for epoch, loss in ((1, 0.5), (2, 0.4), (3, 0.3), (2, 0.25)):
        run.append_metrics([{"epoch": epoch, "train_loss": loss}])
    assert run.read_metrics() == [{"epoch": 1, "train_loss": 0.5}, {"epoch": 2, "train_loss": 0.25}]


def test_the_saved_score_is_the_one_that_was_written(tmp_path):
    run = RunFolder(tmp_path)
    assert run.saved_test().get("value") is None
    run.write_test({"metric": "mae", "value": 0.5})
    assert run.saved_test().get("value") == 0.5 and run.test.read_text() == '{"metric": "mae", "value": 0.5}\n'
    run.test.write_text('{"value": ')
    with pytest.raises(InputError, match=r"test\.json is damaged"):
        run.saved_test().get("value")


def test_a_folder_with_a_run_can_only_be_resumed(tmp_path):
    run = RunFolder(tmp_path / "run")
    for resume in (False, True):
        run.check_free(resume)
    run.begin(tiny_model()[1])
    assert json.loads(run.config.read_text())["dataset"] == "sample"
    run.check_free(resume=True)
    with pytest.raises(InputError, match="already holds a run: continue it with --resume"):
        run.check_free(resume=False)
    with pytest.raises(InputError, match="holds one network, which is no part of a table model: choose another --out"):
        run.begin_parts(Parts("model", 3))
    assert not run.record.exists()
    run.config.write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="is not the config of a run, choose another --out"):
        run.check_free(resume=True)
    run.stack.touch()
    with pytest.raises(InputError, match="holds a table model: choose another --out"):
        run.check_free(resume=True)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_table_model_is_not_taken_for_a_network(tmp_path, part):
    save_tiny(tmp_path)
    (tmp_path / part).touch()
    with pytest.raises(InputError, match=rf"has a part of a table model, {part}, but no stack\.safetensors"):
        weights_file(tmp_path)
