"""The estimators: scikit-learn's conventions on molecules, and scikit-learn's own checks."""

import os
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from graphormer_sepnorm import GraphormerClassifier, GraphormerEmbedder, GraphormerRegressor, load_model
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.evaluate import evaluate_new
from tests.tiny import save_tiny

pytestmark = pytest.mark.slow

TINY = {"quick": True}
SMILES = ["C" * n + end for n in range(1, 11) for end in ("O", "N", "C(=O)O", "c1ccccc1")]
LENGTH = np.array([len(smiles) for smiles in SMILES], float)
KIND = np.array(["acid" if smiles.endswith("C(=O)O") else "other" for smiles in SMILES])
TABLE = pd.DataFrame({"smiles": SMILES, "length": LENGTH, "kind": KIND})


class NumericInput:
    """Numbers instead of SMILES, so that scikit-learn's own checks apply: each row [F] stands for some molecule."""

    scale, step = 101, 1  # of the sum that stands for a molecule

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, False, True
        for kind in (tags.regressor_tags, tags.classifier_tags):
            if kind is not None:
                kind.poor_score = True
        return tags

    def _read_input(self, X, reset):
        rows = validate_data(self, X, reset=reset)
        numbers = self.scale * (rows @ (1 + self.step * np.arange(rows.shape[1]))).astype(float)
        return np.array([SMILES[round(number) % len(SMILES)] for number in numbers])


class NumericRegressor(NumericInput, GraphormerRegressor): ...


class NumericClassifier(NumericInput, GraphormerClassifier): ...


class NumericEmbedder(NumericInput, GraphormerEmbedder):
    scale, step = 100, 0


WEIGHTS = dict.fromkeys(
    (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
    "of a molecule that stands in the table twice both are in one fold, so folds are others than with its weight 2",
)
FLOAT32 = {"check_regressor_multioutput": "predictions are float32, as the model computes them"}
ROUNDED = {}
if torch.backends.cpu.get_cpu_capability() != "AVX512" or "OPENBLAS_CORETYPE" in os.environ:
    ROUNDED["check_methods_sample_order_invariance"] = (
        "the rounding of float32 depends on the place of a molecule in its batch, and the check allows less"
    )


ESTIMATORS = [NumericRegressor(**TINY), NumericClassifier(**TINY), NumericEmbedder(pretrained="foundation-mini")]


def expected_failures(estimator) -> dict[str, str]:
    if isinstance(estimator, NumericEmbedder):
        return ROUNDED
    return WEIGHTS | ROUNDED | (FLOAT32 if isinstance(estimator, NumericRegressor) else {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


INPUTS = {
    "list": SMILES,
    "array": np.array(SMILES),
    "objects": np.array(SMILES, object),
    "column": np.array(SMILES)[:, None],
    "series": TABLE.smiles,
    "shuffled index": TABLE.smiles.set_axis(range(100, 60, -1)),
    "strings": TABLE.smiles.astype("string"),
    "table": TABLE[["smiles"]],
    "molecules": list(map(Chem.MolFromSmiles, SMILES)),
    "table of molecules": pd.DataFrame({"mol": list(map(Chem.MolFromSmiles, SMILES))}),
}


@pytest.fixture(scope="module")
def fitted() -> GraphormerRegressor:
    return GraphormerRegressor(**TINY).fit(SMILES, LENGTH)


@pytest.mark.parametrize("kind", INPUTS)
def test_molecules_come_in_any_container(fitted, kind):
    np.testing.assert_allclose(fitted.predict(INPUTS[kind]), fitted.predict(SMILES), rtol=1e-5)
    refitted = clone(fitted).fit(INPUTS[kind], TABLE.length)
    np.testing.assert_allclose(refitted.predict(SMILES[:3]), fitted.predict(SMILES[:3]), rtol=1e-4)
    assert refitted.n_features_in_ == 1


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        (["CCO", "C(C"], "row 1 .*not a valid SMILES"),
        (["CCO", None], "row 1 .*: The SMILES is missing"),
        (["CCO", np.nan], "row 1 .*: The SMILES is missing"),
        (pd.Series(["CCO", None], dtype="string"), "row 1 .*: The SMILES is missing"),
        ([1.5, 2.5], "row 0 .*: '1.5' is not a valid SMILES"),
        (
            TABLE[["smiles", "kind"]][:2],
            r"table of 2 columns \(smiles, kind\): pass only the .* as in table\['smiles'\]; for conditions, ",
        ),
        (TABLE[["length", "kind"]][:2], r"as in table\['NAME'\];"),
        (np.array([["CCO", "a"], ["CCN", "b"]]), r"one column of SMILES, but the shape is \(2, 2\)"),
        ("CCO", r"X is one molecule: put it in a list, as in \['CCO'\]"),
        (Chem.MolFromSmiles("CCO"), "X is one molecule: put it in a list"),
        (["aspirin", "CCO"], "row 0 .*: 'aspirin' is not a valid SMILES: names are not looked up"),
    ],
)
def test_input_that_is_not_molecules(fitted, smiles, message):
    with pytest.raises(InputError, match=message):
        fitted.predict(smiles)
    with pytest.raises(ValueError, match=message):
        clone(fitted).fit(smiles, [0.0, 1.0])


def test_a_fitted_estimator_is_kept_by_pickle_and_joblib(fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(SMILES), fitted.predict(SMILES))


def test_a_saved_model_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    found = load_model(tmp_path / "model").predict(SMILES, interval=0.8)
    values, spread = fitted.predict(SMILES, return_std=True)
    np.testing.assert_array_equal(found.y0.astype(np.float32), values)
    np.testing.assert_array_equal(found.y0_std.astype(np.float32), spread)
    np.testing.assert_allclose(found[["y0_low", "y0_high"]], fitted.predict_interval(SMILES, 0.8), rtol=1e-6)
    with pytest.raises(InputError, match="already holds a model"):
        fitted.save(tmp_path / "model")


def test_targets_on_their_own_scale_keep_their_names_and_shape():
    targets = pd.DataFrame({"a": LENGTH * 1e4, "b": 5 - LENGTH})
    targets.loc[::3, "a"] = np.nan
    estimator = GraphormerRegressor(**TINY).fit(SMILES, targets)
    prediction = estimator.predict(SMILES)
    assert prediction.shape == (40, 2) and estimator.n_outputs_ == 2
    assert prediction[:, 0].mean() > 1e4 and prediction[:, 1].mean() < 0
    assert estimator.model_.targets == ("a", "b")
    assert estimator.predict_interval(SMILES[:5], 0.5).shape == (5, 2, 2) and estimator.out_of_fold_.shape == (40, 2)
    known, expected = targets.a.notna().to_numpy(), r2_score(targets.b, prediction[:, 1])
    expected = (expected + r2_score(targets.a[known], prediction[known, 0])) / 2
    assert estimator.score(SMILES, targets) == pytest.approx(expected)
    with pytest.raises(InputError, match="y has no labels"):
        estimator.score(SMILES, targets * np.nan)
    one = GraphormerRegressor(networks=np.int64(3), **TINY).fit(SMILES, TABLE.length)
    assert one.predict(SMILES).shape == one.out_of_fold_.shape == (40,) and one.model_.targets == ("length",)
    column = GraphormerRegressor(**TINY).fit(SMILES, LENGTH[:, None])
    assert column.predict(SMILES).shape == column.out_of_fold_.shape == (40, 1)


def test_labels_may_be_bounds_as_in_a_table():
    said = [f">{length - 4:g}" if place % 5 == 0 else f"{length:g}" for place, length in enumerate(LENGTH)]
    estimator = GraphormerRegressor(**TINY).fit(SMILES, said)
    left_out = GraphormerRegressor(**TINY).fit(SMILES, np.where(np.arange(40) % 5, LENGTH, np.nan))
    assert (estimator.predict(SMILES) != left_out.predict(SMILES)).any(), "a bound says something"
    assert np.isfinite(estimator.out_of_fold_).all()
    np.testing.assert_array_equal(np.isnan(left_out.out_of_fold_), np.arange(40) % 5 == 0)
    missing = [None if place % 5 == 0 else pd.NA if place % 7 == 0 else text for place, text in enumerate(said)]
    with_none = GraphormerRegressor(**TINY).fit(SMILES, missing).out_of_fold_
    assert np.flatnonzero(np.isnan(with_none)).tolist() == [k for k in range(40) if k % 5 == 0 or k % 7 == 0]
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\): y0 is 'wet'"):
        GraphormerRegressor(**TINY).fit(SMILES[:2], ["1", "wet"])


def test_censored_labels_are_not_scored(fitted):
    with pytest.raises(InputError, match=r"^y has censored labels, such as '<-0\.92': leave their molecules out"):
        fitted.score(SMILES[:3], ["1", "<-0.92", "2"])
    assert fitted.score(SMILES, [str(length) for length in LENGTH]) == pytest.approx(fitted.score(SMILES, LENGTH))


def test_weights_of_molecules_count():
    weight = np.where(KIND == "acid", 5.0, 1.0)
    plain, weighted, alike = (
        GraphormerRegressor(**TINY).fit(SMILES, LENGTH, sample_weight).predict(SMILES)
        for sample_weight in (None, weight, np.full(40, 3.0))
    )
    np.testing.assert_array_equal(alike, plain)
    assert (weighted != plain).any()


def test_classes_that_are_other_numbers_are_named(tmp_path):
    estimator = GraphormerClassifier(**TINY).fit(SMILES, np.where(KIND == "acid", 2, 1))
    assert estimator.model_.classes == (("1", "2"),)
    words = GraphormerClassifier(**TINY).fit(SMILES, np.where(KIND == "acid", "b", "a"))
    np.testing.assert_array_equal(estimator.predict_proba(SMILES), words.predict_proba(SMILES))
    assert GraphormerClassifier(**TINY).fit(SMILES, KIND == "acid").model_.classes == (("0", "1"),)
    estimator.save(tmp_path / "saved")
    pd.DataFrame({"smiles": SMILES, "y0": 1}).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match="the classes of y0 are 1 and 2, which tables have as 0 and 1"):
        evaluate_new(RunFolder(tmp_path / "saved"), str(tmp_path / "new.csv"))


def test_active_is_the_class_that_the_command_predicts_whatever_the_alphabet_says():
    words = np.where(KIND == "acid", "active", "inactive")
    alphabetical = GraphormerClassifier(**TINY).fit(SMILES, np.where(words == "active", "b", "a"))
    estimator = GraphormerClassifier(**TINY).fit(SMILES, words)
    assert estimator.classes_.tolist() == ["active", "inactive"] and estimator.score(SMILES, words) > 0.9
    assert estimator.model_.classes == (("inactive", "active"),)
    folds = GraphormerClassifier(**TINY, split="random").fit(SMILES, words).out_of_fold_
    assert (estimator.classes_[folds.argmax(axis=1)] == words).mean() > 0.9
    found, expected = estimator.predict_proba(SMILES), alphabetical.predict_proba(SMILES)
    np.testing.assert_array_equal(found, expected[:, ::-1])
    np.testing.assert_array_equal(estimator.model_.predict(SMILES).values[:, 0], found[:, 0])
    np.testing.assert_array_equal(estimator.predict(SMILES) == "active", alphabetical.predict(SMILES) == "b")
    sets = (each.predict_set(SMILES, 0.8) for each in (estimator, alphabetical))
    np.testing.assert_array_equal(next(sets), next(sets)[:, ::-1])


def test_more_than_two_classes():
    ends = [smiles.lstrip("C")[-1] for smiles in SMILES]
    estimator = GraphormerClassifier(**TINY).fit(SMILES, ends)
    assert estimator.classes_.tolist() == sorted(set(ends)) and estimator.model_.kind == "multiclass"
    probability = estimator.predict_proba(SMILES)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)
    assert (estimator.predict(SMILES) == estimator.classes_[probability.argmax(axis=1)]).all()


@pytest.mark.parametrize("classes", [("active", "inactive"), (1, 0), (True, False)])
def test_a_molecule_without_a_class_is_not_learnt_from(classes):
    labels, part = np.where(KIND == "acid", *classes), slice(5, None)
    expected = GraphormerClassifier(**TINY).fit(SMILES[part], labels[part])
    missing = pd.Series(labels).astype(object)
    missing[:3], missing[3:5] = np.nan, None
    for y in (missing, missing.to_frame(), missing.tolist()):
        found = GraphormerClassifier(**TINY).fit(SMILES, y)
        assert found.classes_.tolist() == sorted(classes)
        np.testing.assert_array_equal(np.isnan(found.out_of_fold_[:, 0]), np.arange(40) < 5)
        np.testing.assert_array_equal(found.predict_proba(SMILES), expected.predict_proba(SMILES))
        assert found.score(SMILES, y) == expected.score(SMILES[part], labels[part])
    with pytest.raises(InputError, match="y has no labels"):
        GraphormerClassifier(**TINY).fit(SMILES, np.full(40, np.nan))


def test_several_labels_each():
    labels = pd.DataFrame({"acid": KIND == "acid", "long": LENGTH > 8}).astype(float)
    estimator = GraphormerClassifier(**TINY).fit(SMILES, labels)
    assert estimator.predict(SMILES).shape == estimator.predict_proba(SMILES).shape == (40, 2)
    assert set(np.unique(estimator.predict(SMILES))) <= {0, 1} and estimator.model_.targets == ("acid", "long")
    labels.loc[:3, "long"] = np.nan
    estimator = GraphormerClassifier(**TINY).fit(SMILES, labels)
    labels.loc[20, "long"] = 1 - labels.loc[20, "long"]
    assert estimator.score(SMILES[:25], labels[:25]) == 24 / 25


def test_sets_of_classes_grow_with_confidence():
    estimator = GraphormerClassifier(**TINY).fit(SMILES, KIND)
    narrow, wide = (estimator.predict_set(SMILES, confidence) for confidence in (0.5, 0.9))
    assert narrow.shape == (40, 2) and narrow.any(axis=1).all()
    assert wide.sum() >= narrow.sum() and wide[np.arange(40), np.where(KIND == "acid", 0, 1)].mean() >= 0.9
    labels = pd.DataFrame({"acid": KIND == "acid", "long": LENGTH > 8}).astype(int)
    assert GraphormerClassifier(**TINY).fit(SMILES, labels).predict_set(SMILES).shape == (40, 2, 2)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("pretrained"), featurizer="mol"))


def test_embeddings_in_pipelines(pretrained):
    embedder = GraphormerEmbedder(pretrained=pretrained)
    assert make_pipeline(embedder, Ridge(1e-3)).fit(SMILES, LENGTH).score(SMILES, LENGTH) > 0.5
    columns = ColumnTransformer([("embedding", embedder, "smiles"), ("number", "passthrough", ["length"])])
    make_pipeline(columns, LogisticRegression()).fit(TABLE, KIND)


def test_a_network_that_an_estimator_trained_embeds(tiny_recipe):
    estimator = GraphormerRegressor(recipe=tiny_recipe, networks=2, blend=False)
    embedder = GraphormerEmbedder(estimator=estimator).fit(SMILES, LENGTH)
    assert embedder.transform(SMILES[:3]).shape == (3, 16)
    trained = estimator.fit(SMILES, LENGTH).model_.members["networks"].models[0][0]
    assert (trained.cls == embedder.embedder_.model.cls).all()


def test_an_embedder_needs_one_source_of_its_model(pretrained):
    with pytest.raises(InputError, match="not both"):
        GraphormerEmbedder(pretrained=pretrained, estimator=GraphormerRegressor()).fit(SMILES)
    with pytest.raises(InputError, match="requires y"):
        GraphormerEmbedder(estimator=GraphormerRegressor()).fit(SMILES)
    with pytest.raises(InputError, match="trains no networks"):
        GraphormerEmbedder(estimator=GraphormerRegressor(**TINY)).fit(SMILES, LENGTH)
    shipped = r"^adme combines 5 networks, .* no single embedding: .*load_model\('adme'\), or .* such as foundation$"
    with pytest.raises(InputError, match=shipped):
        GraphormerEmbedder("adme").fit(SMILES)
    with pytest.raises(NotFittedError):
        GraphormerEmbedder(pretrained=pretrained).transform(SMILES)
