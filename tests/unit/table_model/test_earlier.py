"""Run folders of earlier versions: those that were kept predict what they predicted, and their parts by hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from scipy.special import expit, logit

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference import predict
from graphormer_sepnorm.inference.calibration import Calibration
from graphormer_sepnorm.inference.columns import PredictionColumns
from graphormer_sepnorm.inference.domain import fit_domain
from graphormer_sepnorm.inference.predict import Embedder, Predictor
from graphormer_sepnorm.inference.predict_table import predict_table
from graphormer_sepnorm.inference.trust import Trust
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.earlier import EarlierModel, load_earlier
from graphormer_sepnorm.table_model.evaluate import evaluate_earlier
from graphormer_sepnorm.table_model.forest import forest_features, load_forest, save_forest
from graphormer_sepnorm.table_model.growing import fit_forest
from graphormer_sepnorm.table_model.load import load_model, load_predicting_model
from tests.tiny import tiny_model

KEPT = Path(__file__).parents[2] / "earlier"  # run folders of an earlier version, with what it predicted and scored

UNLIKE = r"No training molecule is similar: .* or more\."


@pytest.fixture(scope="module")
def tiny():
    return tiny_model()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "interval"), [("ensemble", 0.8), ("classes", None)])
def test_what_was_kept_predicts_and_scores_as_it_did(tmp_path, name, interval):
    """By command and from Python: intervals and domain of an ensemble, and calibrated probabilities."""
    written = pd.read_csv(KEPT / f"{name}.csv", keep_default_na=False)
    written[["smiles"]].to_csv(tmp_path / "in.csv", index=False)
    model = load_predicting_model([str(KEPT / name)])
    predict_table(model, str(tmp_path / "in.csv"), tmp_path / "out.csv", interval=interval, domain=True)
    found = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    python = load_model(KEPT / name).predict(written[["smiles"]], interval=interval, domain=True)
    assert list(found) == list(python) and set(written) <= set(found)
    for column in written:
        if column == "warning":  # has had one more sentence since
            assert found[column].tolist() == python[column].tolist()
            assert found[column].str.replace(UNLIKE, "", regex=True).str.rstrip().tolist() == written[column].tolist()
        elif column == "error":  # has given the reason since
            assert found[column].tolist() == python[column].tolist()
            assert found[column].str.partition(":")[0].str.rstrip(".").tolist() == [
                text.rstrip(".") for text in written[column]
            ]
        elif column in ("smiles", "nearest"):
            assert found[column].tolist() == written[column].tolist() == python[column].tolist()
        else:
            expected = pd.to_numeric(written[column])
            atol = 1e-5 * np.nanmax(np.abs(expected))  # ends of intervals and distances are differences of float32
            np.testing.assert_allclose(pd.to_numeric(found[column]), expected, rtol=1e-4, atol=atol)
            np.testing.assert_allclose(python[column], expected, rtol=1e-4, atol=atol)
    expected = json.loads((KEPT / f"{name}.json").read_text())
    found = evaluate_earlier(RunFolder(KEPT / name), "test")
    assert found["value"] == pytest.approx(expected["value"], rel=1e-5)
    assert {name: found["scores"][name] for name in expected["scores"]} == pytest.approx(expected["scores"], rel=1e-5)
    assert (found["n"], found["seed"], found["epoch"]) == (expected["n"], expected["seed"], expected["epoch"])


def test_without_forest_and_trust_a_folder_is_its_networks(tmp_path):
    shutil.copytree(KEPT / "classes", tmp_path / "run")
    (tmp_path / "run" / "forest.safetensors").unlink()
    assert load_earlier(tmp_path / "run").forest is None
    (tmp_path / "run" / "trust.safetensors").unlink()
    found = load_earlier(tmp_path / "run")
    assert type(found) is Predictor
    assert evaluate_earlier(RunFolder(tmp_path / "run"), "test")["scores"]["rocauc"] == pytest.approx(
        0.8169642857142857
    )


@pytest.mark.parametrize("name", ["trust.safetensors", "forest.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "of another model"])
def test_damaged_files_are_refused(tmp_path, name, damage):
    run = tmp_path / "run"
    shutil.copytree(KEPT / "ensemble", run)
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "of another model":
        save_forest(run / "forest.safetensors", replace(load_forest(run / "forest.safetensors"), targets=3))
        shutil.copy(KEPT / "classes" / "trust.safetensors", run / "trust.safetensors")
    else:
        (run / name).write_bytes({"cut": content[:-9], "flipped": content, "empty": b""}[damage])
    with pytest.raises(InputError, match="does not match the shape" if damage == "of another model" else name):
        load_earlier(run)


def test_beside_a_forest_the_prediction_is_their_blend_and_then_calibrated(tiny):
    smiles = ["CCO", "c1ccccc1", "C(", None]
    y = np.array([[0.0], [1], [1], [0]])
    forest = fit_forest(forest_features(["CCO", "CCN", "CCCC", "CO"]), y, "classification", 0, 3)
    model = tiny_model(kind="classification", targets=("toxic",))
    domain = fit_domain(["CCO", "c1ccccc1C"])
    trust = Trust(domain, calibration=Calibration(np.array([2.0]), np.array([1.0])))
    ours = Predictor([model]).predict(smiles)
    theirs = forest.predict(forest_features(smiles[:2]))
    half = EarlierModel([model], replace(forest, weight=0.5)).predict(smiles)
    np.testing.assert_allclose(half.values[:2], (ours.values[:2] + theirs) / 2, rtol=1e-6)
    calibrated = EarlierModel([model], replace(forest, weight=0.5), trust).predict(smiles)
    np.testing.assert_allclose(calibrated.values[:2], expit(2 * logit(half.values[:2].astype(float)) + 1), rtol=1e-5)
    for found in (ours, half, calibrated):
        assert np.isnan(found.values[2:]).all() and all(found.errors[2:])
    assert ours.warnings == half.warnings == [""] * 4 and calibrated.warnings == [""] * 4
    unweighted = EarlierModel([model], forest).predict(smiles)
    np.testing.assert_array_equal(unweighted.values, ours.values)


def test_forest_and_warnings_look_at_a_salt_as_the_models_do(tiny):
    forest = fit_forest(forest_features(["CCO", "CC(=O)[O-].[Na+]"]), np.array([[0.0], [9]]), "regression", 0, 20)
    stripping = (tiny[0], replace(tiny[1], featurizer="ogb-without-salts"))
    trust = Trust(fit_domain(["CC(=O)[O-]"]))
    found = EarlierModel([stripping], replace(forest, weight=1.0), trust).predict(["CC(=O)[O-].[Na+]", "CC(=O)[O-]"])
    assert found.values[0] == found.values[1] and found.warnings == ["", ""]


def test_a_forest_or_trust_of_other_targets_is_refused(tiny):
    forest = fit_forest(forest_features(["CCO", "CCN"]), np.eye(2), "regression", 0, 1)
    trust = Trust(fit_domain(["CCO"]), calibration=Calibration(np.ones(3), np.ones(3)))
    for beside in ((forest, None), (None, trust), (None, Trust(fit_domain(["CCO"], np.zeros((1, 7)))))):
        with pytest.raises(InputError, match="does not match the shape of its models"):
            EarlierModel([tiny], *beside)


def test_a_table_model_parses_a_molecule_once_and_prepares_it_once(monkeypatch):
    """For its networks, its forest, its warnings, its nearest neighbour and its distance together."""
    smiles = ["CCO", "c1ccccc1C", "C(", "CC(=O)[O-]"]
    models = [tiny_model(seed=seed) for seed in range(3)]
    forest = replace(fit_forest(forest_features(["CCO", "CCN"]), np.eye(2)[:, :1], "regression", 0, 2), weight=0.5)
    trust = Trust(fit_domain(["CCO", "CCN"], np.zeros((2, 16))))
    comparer = PredictionColumns(EarlierModel(models, forest, trust), domain=True).reader
    parsed, prepared = [], []
    parse, prepare = Chem.MolFromSmiles, predict.in_memory

    def parsing(text, *arguments, **options):
        parsed.append(text)
        return parse(text, *arguments, **options)

    def preparing(graphs, encodings):
        prepared.append(len(graphs))
        return prepare(graphs, encodings)

    monkeypatch.setattr(Chem, "MolFromSmiles", parsing)
    monkeypatch.setattr(predict, "in_memory", preparing)
    found = comparer.compute(read_molecules("ogb", smiles))
    assert np.isfinite(found.values[[0, 1, 3]]).all() and np.isfinite(found.nearness.distance[[0, 1, 3]]).all()
    assert [text for text in parsed if text != "C("] == ["CCO", "c1ccccc1C", "CC(=O)[O-]"]
    assert prepared == [3]


def test_the_digest_of_a_predictor_tells_forests_and_trusts_apart(tiny):
    forest = fit_forest(forest_features(["CCO", "CCN"]), np.eye(2)[:, :1], "regression", 0, 1)
    trusts = [None, Trust(fit_domain(["CCO"])), Trust(fit_domain(["CCN"]))]
    forests = [None, forest, replace(forest, weight=0.5)]
    assert len({EarlierModel([tiny], forest, trust).digest for forest in forests for trust in trusts}) == 9


def test_nearness_is_measured_from_the_first_model(tiny):
    known, asked = ["CCO", "c1ccccc1C"], ["CCO", "C(", "CCCO"]
    embedded = Embedder(*tiny).compute(read_molecules("ogb", [*known, *asked])).values
    trusting = EarlierModel([tiny], trust=Trust(fit_domain(known, embedded[:2])))
    found = PredictionColumns(trusting, domain=True).reader.compute(read_molecules("ogb", asked))
    nearest = np.linalg.norm(embedded[4] - embedded[:2], axis=1).min()
    np.testing.assert_allclose(found.nearness.distance, [0, np.nan, nearest], atol=1e-2)
    assert found.nearness.similarity[0] == 1 and np.isnan(found.nearness.similarity[1])
    assert found.nearness.molecule == ["CCO", "", "CCO"]
    np.testing.assert_array_equal(found.values, trusting.predict(asked).values)
    with pytest.raises(InputError, match="the model has no information on its training molecules"):
        PredictionColumns(Predictor([tiny]), domain=True)
