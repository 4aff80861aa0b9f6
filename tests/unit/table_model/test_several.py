"""Several models in one table, and panels."""

import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.library.part_writer import Assignment, PartOptions, Selection, write_part
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.predict_table import predict_table
from graphormer_sepnorm.predict.predictors import Predictor
from graphormer_sepnorm.predict.side_by_side import SideBySide
from graphormer_sepnorm.predict.training_rows import Drugs, save_drugs
from graphormer_sepnorm.runs import zoo
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.device import Compute
from graphormer_sepnorm.table_model.features import Conditions
from graphormer_sepnorm.table_model.load import load_model, load_models, load_predicting_model
from tests.several import LEARNT, save_panel, save_student, ship
from tests.tiny import save_tiny

ASKED = ["CCO", "c1ccccc1CO", "C[C"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of models: potency (a, b), safe (classes), warm (b, under conditions), net (network), panel."""
    folder = tmp_path_factory.mktemp("models")
    warm = Conditions.of(("T", "assay"), [("25.0", "x"), ("37.0", "y")])
    save_student(folder / "potency", ("a", "b"))
    save_student(folder / "safe", ("toxic",), "classification", learnt=LEARNT[:8])
    save_student(folder / "warm", ("b", "c"), seed=3, learnt=LEARNT[2:], conditions=warm)
    for seed in range(2):
        save_tiny(folder / f"net{seed}", featurizer="ogb", seed=seed)
    save_panel(folder / "panel")
    return folder


@pytest.fixture
def named(models):
    return lambda *names: [str(models / name) for name in names]


def columns_of(frame: pd.DataFrame, *names: str) -> np.ndarray:
    return frame[list(names)].to_numpy(float)


@pytest.mark.slow
def test_each_model_predicts_what_it_predicts_by_itself(named):
    """Two kinds, a network with other features, and an average of two networks."""
    together = load_models(named("potency", "safe", "net0", "net1")).predict(ASKED)
    assert list(together) == ["smiles", "a", "b", "toxic", "toxic_class", "logp", "logp_std", "error"]
    parts = ((["potency"], ["a", "b"]), (["safe"], ["toxic", "toxic_class"]), (["net0", "net1"], ["logp"]))
    for names, columns in parts:
        alone = load_models(named(*names)).predict(ASKED)
        np.testing.assert_allclose(columns_of(together, *columns), columns_of(alone, *columns), rtol=1e-5)
    assert together.error.map(bool).tolist() == [False, False, True]
    two = named("potency", "safe")
    assert load_model(*two).predict(ASKED).equals(load_models(two).predict(ASKED))
    assert isinstance(load_predicting_model(named("net0", "net1")), Predictor)


@pytest.mark.slow
def test_the_shell_a_library_and_python_write_the_same_table(named, tmp_path):
    names, options = named("potency", "safe"), {"interval": 0.8, "domain": True, "alerts": True, "properties": True}
    found, model = load_models(names).predict(ASKED, **options), load_predicting_model(names)
    predict_table(model, ASKED, tmp_path / "out.csv", answers=Answers(**options))
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    pd.DataFrame({"smiles": ASKED}).to_parquet(tmp_path / "in.parquet")
    job = Assignment(str(tmp_path / "in.parquet"), str(tmp_path / "part.parquet"), "", "")
    write_part(model, Compute(torch.device("cpu")), PartOptions(Selection("a"), answers=Answers(**options)), job)
    part = pd.read_parquet(job.part)
    assert list(found) == list(written) == list(part)
    numbers = found.select_dtypes("number").columns
    np.testing.assert_allclose(found[numbers], written[numbers].replace("", np.nan).astype(float), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found[numbers], part[numbers].astype(float), rtol=1e-5, atol=1e-7)
    texts = found.columns.difference(numbers)
    assert (found[texts] == written[texts]).all(axis=None) and "alerts" in texts
    assert found.columns.tolist().count("MolWt") == 1 and {"a_low", "toxic_set"} <= set(found)


def test_columns_that_two_models_have_begin_with_the_name_of_the_model(named):
    found = load_models(named("potency", "safe")).predict([LEARNT[0], LEARNT[9]], domain=True)
    near = [name for name in found if "nearest" in name or "similarity" in name]
    assert near == [
        "potency_nearest", "nearest_a", "nearest_b", "potency_similarity", "safe_nearest", "nearest_toxic",
        "safe_similarity",
    ]  # fmt: skip
    assert found.potency_similarity.tolist() == [1, 1] and found.safe_similarity[1] < 1, "safe has eight molecules"
    assert columns_of(found, "nearest_a", "nearest_b", "nearest_toxic")[0].tolist() == [0, 1, 0]
    twice = load_models(named("potency", "warm")).predict(["C"], conditions={"T": 25, "assay": "x"})
    assert [name for name in twice if "b" in name] == ["potency_b", "warm_b"] and {"a", "c"} <= set(twice)


@pytest.mark.slow
def test_conditions_go_to_the_models_that_have_them(named, tmp_path):
    names, table = named("potency", "warm"), pd.DataFrame({"smiles": ASKED[:2], "T": [25, 37], "assay": ["x", "y"]})
    found = load_models(names).predict(table)
    alone = load_models(names[1:]).predict(table)
    np.testing.assert_allclose(columns_of(found, "warm_b", "c"), columns_of(alone, "b", "c"), rtol=1e-5)
    given = load_models(names).predict(table.drop(columns="T"), conditions={"T": 25})
    assert given["T"].tolist() == [25, 25] and given.c[0] == pytest.approx(found.c[0], rel=1e-5)
    table.to_csv(tmp_path / "in.csv", index=False)
    predict_table(load_predicting_model(names), str(tmp_path / "in.csv"), tmp_path / "out.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv").c, found.c, rtol=1e-5)
    with pytest.raises(InputError, match="no column T, assay"):
        load_models(names).predict(ASKED)
    with pytest.raises(InputError, match=r"pH is not a condition of the models: their conditions are T, assay"):
        load_models(names).predict(ASKED, conditions={"pH": 7})


def test_a_molecule_that_one_model_cannot_read_has_the_predictions_of_the_others(models, named):
    save_tiny(models / "zinc-like", featurizer="zinc", targets=("penalty",))
    found = load_models(named("zinc-like", "potency")).predict(["[Na+].[Cl-]", "CCO"])
    assert np.isnan(found.penalty).tolist() == [True, False] and found.a.notna().all()
    assert found.error[0].startswith("zinc-like: ") and "potency" not in found.error[0]
    only = load_models(named("zinc-like", "potency")).predict(["[Na+].[Cl-]", "C[C"], endpoints=["a"])
    assert [bool(text) for text in only.error] == [False, True] and "zinc-like" not in only.error[1]


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        (["hERG"], ["hERG", "hERG_drug_percentile"]),
        (["tox*", "papp"], ["toxic", "toxic_class", "toxic_drug_percentile", "Papp", "Papp_limit"]),
    ],
)
def test_endpoints_are_chosen_by_name_or_pattern(named, endpoints, expected):
    found = load_models(named("panel")).predict(ASKED, endpoints=endpoints)
    assert list(found) == ["smiles", *expected, "error"]
    domain = load_models(named("panel")).predict(ASKED, endpoints=["hERG"], domain=True)
    assert {"nearest", "nearest_hERG"} <= set(domain) and "nearest_toxic" not in domain


def test_a_panel_has_one_domain_and_the_order_of_its_card(named):
    model = load_predicting_model(named("panel"))
    assert isinstance(model, SideBySide) and model.targets == ("toxic", "hERG", "Papp", "bound")
    found = load_models(named("panel")).predict([LEARNT[3], "CCCC=O"], interval=0.8, domain=True)
    near = [name for name in found if "nearest" in name or name in ("similarity", "warning")]
    labels = [f"nearest_{target}" for target in model.targets]
    assert near == ["nearest", *labels, "similarity", "warning"] and found.nearest[0] == LEARNT[3]
    assert columns_of(found, *labels)[0].tolist() == [1, 6, 7, 0], "row 3 has the labels 2 * 3 and the next"
    assert "Papp_limit" in found and found.hERG_percentile.notna().all()


def test_the_percentile_among_drugs_counts_ties_half(named, tmp_path):
    drugs = Drugs(np.array([[0.1], [0.2], [0.2], [0.4]], np.float32), ("a",), "four")
    asked = np.array([0.0, 0.2, 0.3, 0.4, 1, np.nan], np.float32)
    np.testing.assert_array_equal(drugs.percentiles(asked, "a"), [0, 50, 75, 87.5, 100, np.nan])
    found = load_models(named("panel")).predict(ASKED[:2])
    expected = [100 * np.mean(np.array([0.1, 0.2, 0.3, 0.5]) < value) for value in found.toxic]
    assert found.toxic_drug_percentile.tolist() == pytest.approx(expected)
    for values in (np.array([[np.nan]]), np.zeros((2, 3)), np.zeros((0, 1))):
        with pytest.raises(InputError, match="not finite numbers of 1 targets"):
            save_drugs(tmp_path, values, ["a"], "none")


@pytest.mark.slow
def test_a_shipped_panel_is_unpacked(models, tmp_path, monkeypatch):
    ship(models / "panel", tmp_path / "resources")
    monkeypatch.setattr(zoo, "resource_files", lambda: list((tmp_path / "resources").iterdir()))
    monkeypatch.setenv("GRAPHORMER_SEPNORM_CACHE", str(tmp_path / "cache"))
    found = load_model("small").predict(ASKED)
    pd.testing.assert_frame_equal(found, load_model(models / "panel").predict(ASKED))
    (resolve_model("small") / "regression" / "stack.safetensors").write_bytes(b"")
    pd.testing.assert_frame_equal(found, load_model("small").predict(ASKED))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: save_student(folder / "third", ("other",)), "does not name each target"),
        (lambda folder: shutil.rmtree(folder / "regression"), "does not name each target"),
        (lambda folder: (folder / "drugs.safetensors").write_bytes(b"x"), "drugs.safetensors"),
        (partial(save_drugs, values=np.zeros((3, 1)), targets=["none"], source=""), "do not fit the targets"),
    ],
)
def test_a_panel_that_does_not_fit_together_is_refused(tmp_path, change, message):
    change(save_panel(tmp_path / "panel"))
    with pytest.raises(InputError, match=message):
        load_predicting_model([str(tmp_path / "panel")])
