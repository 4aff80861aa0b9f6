"""Loading, saving, fine-tuning, and predictions straight from SMILES."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem

from graphormer_sepnorm import Graphormer
from graphormer_sepnorm.chem.features import read_graphs
from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import ShareNorm
from graphormer_sepnorm.recipes import find_recipe
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.runs.zoo import PRETRAINED, resolve_model, shipped_models
from tests.tiny import save_tiny, tiny_model

SMILES = ["CCO", "c1ccccc1O", "C", "CC(=O)[O-]", "CN1CCC[C@H]1c1cccnc1"]


def make_config(num_tasks: int = 2, layers: int = 2) -> Config:
    """A small run on the vocabulary of ZINC, whose targets are scaled by 10 around 100."""
    _, config = tiny_model("zinc", ("a", "b")[:num_tasks])
    scale = {"mean": (100.0,) * num_tasks, "std": (10.0,) * num_tasks}
    return replace(
        config,
        dataset="none",
        task=replace(config.task, **scale),
        model=replace(config.model, layers=layers),
        train=TrainConfig(epochs=1, batch_size=8),
    )


@pytest.fixture
def model() -> Graphormer:
    torch.manual_seed(0)
    config = make_config()
    model = Graphormer(config.model).eval()
    model.run_config, model.facts = config, {"epoch": 3}
    return model


@pytest.mark.slow
def test_a_saved_model_comes_back_whole(model, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"config.json", "model.safetensors", "README.md"}
    expected = model.predict(SMILES)
    for place in (tmp_path / "saved", str(tmp_path / "saved" / "model.safetensors")):
        loaded = Graphormer.from_pretrained(place)
        assert not loaded.training
        assert (loaded.run_config, loaded.facts) == (model.run_config, model.facts)
        np.testing.assert_array_equal(loaded.predict(SMILES), expected)
    _, config, facts = load_model(tmp_path / "saved")
    assert (config, facts) == (model.run_config, model.facts)


def test_weights_that_were_changed_are_saved_without_the_scores_of_the_old_ones(model, tmp_path):
    model.facts = {"epoch": 3, "val_metric": 0.5, "test": 0.4, "licence": "MIT"}
    model.save_pretrained(tmp_path)
    loaded = Graphormer.from_pretrained(tmp_path)
    loaded.save_pretrained(tmp_path)
    assert Graphormer.from_pretrained(tmp_path).facts == model.facts, "the weights are the same"
    with torch.no_grad():
        loaded.head[2].bias += 1
    loaded.save_pretrained(tmp_path)
    assert Graphormer.from_pretrained(tmp_path).facts == {"licence": "MIT"}
    loaded.facts["test"] = 0.3
    loaded.save_pretrained(tmp_path)
    assert Graphormer.from_pretrained(tmp_path).facts == {"licence": "MIT", "test": 0.3}, "that of the new weights"


def test_a_model_survives_pickle(model):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(SMILES), model.predict(SMILES))


def test_predictions_are_on_the_scale_of_the_targets(model):
    prediction = model.predict(SMILES)
    assert prediction.shape == (5, 2) and prediction.dtype == np.float32
    assert (abs(prediction - 100) < 60).all()
    scaled = model.run_config
    model.run_config = replace(scaled, task=replace(scaled.task, mean=(0.0, 0.0), std=(1.0, 1.0)))
    np.testing.assert_allclose(100 + 10 * model.predict(SMILES), prediction, rtol=1e-5)


def test_predictions_keep_to_the_limits_of_the_task(model):
    free = model.predict(["CCO", "c1ccccc1"])[:, 0]
    task = replace(model.run_config.task, limits=((None, float(free.min())),) * len(model.run_config.task.targets))
    model.run_config = replace(model.run_config, task=task)
    assert model.predict(["CCO", "c1ccccc1"])[:, 0].tolist() == pytest.approx([free.min()] * 2)


@pytest.mark.parametrize("kind", ["regression", "classification", "multiclass"])
def test_the_task_converts_the_output_of_a_batch_to_predictions(model, kind):
    if kind != "regression":
        model.run_config = replace(model.run_config, task=TaskConfig(kind=kind, metric="rocauc", targets=("a", "b")))
    batch = in_memory(read_graphs("zinc", SMILES), model.config.encodings).batch(range(len(SMILES)))
    with torch.no_grad():
        predicted = model.task.predict(model(batch))
    np.testing.assert_allclose(predicted, model.predict(SMILES), rtol=1e-5)


def test_molecules_do_not_depend_on_their_company(model, monkeypatch):
    together = model.predict(SMILES)
    np.testing.assert_allclose(np.concatenate([model.predict([s]) for s in SMILES]), together, rtol=1e-4)
    monkeypatch.setattr("graphormer_sepnorm.predict.pretrained.MOLECULES_PER_CHUNK", 2)
    np.testing.assert_allclose(model.predict(pd.Series(SMILES, index=range(5, 10))), together, rtol=1e-4)


def test_a_table_is_read_from_its_column_of_smiles(model):
    table = pd.DataFrame({"id": range(5), "Canonical_SMILES": SMILES}, index=range(5, 10))
    np.testing.assert_array_equal(model.predict(table), model.predict(SMILES))
    np.testing.assert_array_equal(model.embed(table.assign(smiles=SMILES[::-1])), model.embed(SMILES[::-1]))
    np.testing.assert_array_equal(model.predict(np.array(SMILES)[:, None]), model.predict(SMILES))


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        (["CCO", "C(C"], "row 1.*'C\\(C' is not a valid SMILES"),
        (["CCO", "C", None], "row 2.*The SMILES is missing"),
        (["", "C"], "row 0.*empty"),
        (["C", "[Xe]"], "row 1.*Xe"),
        ("CCO", "a list of molecules, not one molecule"),
        (np.array([["C", "CC"]]), r"molecules must be one column of SMILES, but the shape is \(1, 2\)"),
        (Chem.MolFromSmiles("CCO"), "a list of molecules, not one molecule"),
        ({"smiles": ["CCO"]}, "pass a DataFrame, a Series or a list of SMILES, not a dict"),
        (pd.DataFrame({"a": ["C"], "b": ["C"]}), r"the table has no column 'smiles': pass it, as in table\['NAME'\]"),
    ],
)
def test_what_cannot_be_read_is_named(model, smiles, message, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.predict.pretrained.MOLECULES_PER_CHUNK", 2)
    with pytest.raises(InputError, match=message):
        model.predict(smiles)


def test_a_model_that_its_config_does_not_describe_is_not_saved(model, tmp_path):
    model.blocks[1].ffn_norm = ShareNorm(16)
    with pytest.raises(InputError, match="other norms or layers than its config"):
        model.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["nothing", "tests/nothing", "owner/nothing"])
def test_a_name_that_is_nowhere(name, tmp_path):
    with pytest.raises(InputError, match=f"no file or folder {name},"):
        Graphormer.from_pretrained(name, local_files_only=True, cache_dir=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_models().keys() - PRETRAINED))
def test_shipped_weights_load_by_name_with_their_card(name):
    model = Graphormer.from_pretrained(name)
    assert model.predict(["CCO"]).shape == (1, 1)
    assert model.facts["licence"] and model.facts["test"]
    card = resolve_model(name).with_suffix(".md").read_text()
    assert f"{model.facts['test']:.4f}" in card and f"{model.facts['val_metric']:.4f}" in card
    assert find_recipe(name).train == model.run_config.train


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PRETRAINED))
def test_a_foundation_embeds_one_molecule_the_same_way_however_it_is_written(name, tmp_path):
    model = Graphormer.from_pretrained(name)
    card = resolve_model(name).with_suffix(".md").read_text()
    assert model.facts["licence"] and f"{model.facts['val_metric']:.4f}" in card
    targets = len(model.run_config.task.targets)
    assert f"{targets} numbers of the MiniMol embedding" in card or "[foundation](foundation.md)" in card
    assert f"{sum(p.numel() for p in model.parameters()):,} parameters" in card
    with pytest.raises(InputError, match=r"^the model imitates the embeddings .*: call embed, or fine-tune it"):
        model.predict(["CCO"])
    model.save_pretrained(tmp_path)
    assert ".embed([" in (tmp_path / "README.md").read_text()
    spellings = ["C[C@H](N)C(=O)O", "N[C@@H](C)C(=O)O", "OC(=O)[C@@H](N)C"]
    embeddings = model.embed(spellings)
    assert f"[2, {model.config.width}]" in card
    assert embeddings.shape == (3, model.config.width) and embeddings.std(axis=1).min() > 0.1
    np.testing.assert_allclose(embeddings, embeddings[:1].repeat(3, axis=0), atol=1e-4)


def test_a_folder_that_predicts_with_more_than_one_network_is_refused(tmp_path):
    for number in range(2):
        save_tiny(tmp_path / "several" / f"model-{number}")
    RunFolder(tmp_path / "several").begin_parts(Parts("model", 2))
    with pytest.raises(InputError, match="several combines 2 networks"):
        Graphormer.from_pretrained(tmp_path / "several")
    one = save_tiny(tmp_path / "one")
    Graphormer.from_pretrained(one)
    (one / "forest.safetensors").touch()
    with pytest.raises(InputError, match=r"has a part of a table model, forest\.safetensors, but no stack"):
        Graphormer.from_pretrained(one)
    Graphormer.from_pretrained(one / "model.safetensors")
