"""scikit-learn's conventions, on SMILES and by scikit-learn's own checks."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from graphormer_sepnorm import GraphormerClassifier, GraphormerEmbedder, GraphormerRegressor
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.trainer import Trainer

TINY = {"epochs": 1, "layers": 1, "width": 8, "heads": 2, "random_state": 0}
SMILES = ["C" * n + end for n in range(1, 11) for end in ("O", "N", "C(=O)O", "c1ccccc1")]
LENGTH = np.array([len(smiles) for smiles in SMILES], float)
KIND = np.array(["acid" if smiles.endswith("C(=O)O") else "other" for smiles in SMILES])
TABLE = pd.DataFrame({"smiles": SMILES, "length": LENGTH, "kind": KIND})


class NumericInput:
    """Numbers instead of SMILES, so that scikit-learn's own checks apply: each row [F] stands for some molecule."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, False, True
        for kind in (tags.regressor_tags, tags.classifier_tags):
            if kind is not None:
                kind.poor_score = True
        return tags

    def read_input(self, X, reset):
        rows = validate_data(self, X, reset=reset)
        return np.array([SMILES[round(100 * float(row.sum())) % len(SMILES)] for row in rows])


class NumericRegressor(NumericInput, GraphormerRegressor):
    pass


class NumericClassifier(NumericInput, GraphormerClassifier):
    pass


class NumericEmbedder(NumericInput, GraphormerEmbedder):
    pass


FLOAT32 = {"check_regressor_multioutput": "predictions are float32, as the model computes them"}


@parametrize_with_checks([NumericRegressor(**TINY)], expected_failed_checks=lambda estimator: FLOAT32)
def test_scikit_learns_checks_of_the_regressor(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([NumericClassifier(**TINY), NumericEmbedder(estimator=NumericRegressor(**TINY))])
def test_scikit_learns_checks_of_the_others(estimator, check):
    check(estimator)


def test_cross_validation():
    scores = cross_val_score(GraphormerRegressor(**TINY), SMILES, LENGTH, cv=3)
    assert scores.shape == (3,) and np.isfinite(scores).all()


def test_a_grid_search_over_numpy_numbers():
    grid = {"lr": np.array([1e-3, 1e-2]), "layers": np.arange(1, 3)}
    search = GridSearchCV(GraphormerRegressor(**TINY), grid, cv=2).fit(TABLE.smiles, TABLE.length)
    assert set(search.best_params_) == {"lr", "layers"}


@pytest.mark.slow
def test_training_learns():
    learned = GraphormerRegressor(**{**TINY, "epochs": 30, "width": 16}, lr=1e-2, batch_size=8).fit(SMILES, LENGTH)
    assert learned.score(SMILES, LENGTH) > 0.8
    kinds = GraphormerClassifier(**{**TINY, "epochs": 30, "width": 16}, lr=1e-2, batch_size=8).fit(SMILES, KIND)
    assert kinds.score(SMILES, KIND) == 1


INPUTS = {
    "list": SMILES,
    "array": np.array(SMILES),
    "objects": np.array(SMILES, object),
    "column": np.array(SMILES)[:, None],
    "series": TABLE.smiles,
    "shuffled index": TABLE.smiles.set_axis(range(100, 60, -1)),
    "strings": TABLE.smiles.astype("string"),
    "table": TABLE[["smiles"]],
}


@pytest.fixture(scope="module")
def fitted() -> GraphormerRegressor:
    return GraphormerRegressor(**TINY).fit(SMILES, LENGTH)


@pytest.mark.parametrize("kind", INPUTS)
def test_smiles_come_in_any_container(fitted, kind):
    np.testing.assert_array_equal(fitted.predict(INPUTS[kind]), fitted.predict(SMILES))
    refitted = clone(fitted).fit(INPUTS[kind], TABLE.length)
    np.testing.assert_array_equal(refitted.predict(SMILES[:3]), fitted.predict(SMILES[:3]))
    assert refitted.n_features_in_ == 1


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        (["CCO", "C(C"], "row 1 .*not a valid SMILES"),
        (["CCO", None], "row 1 .*string"),
        ([1.5, 2.5], "row 0 .*string, not float"),
        (TABLE[["smiles", "kind"]][:2], r"one column of SMILES, it has the shape \(2, 2\)"),
        ("CCO", "one column"),
    ],
)
def test_input_that_is_not_smiles(fitted, smiles, message):
    with pytest.raises(InputError, match=message):
        fitted.predict(smiles)
    with pytest.raises(ValueError, match=message):
        clone(fitted).set_params(validation_fraction=1).fit(smiles, [0.0, 1.0])


def test_parameters_are_stored_untouched():
    estimator = GraphormerRegressor(epochs=7, lr=1, pretrained="somewhere")
    assert (estimator.epochs, estimator.lr, estimator.pretrained) == (7, 1, "somewhere")
    assert clone(estimator).get_params() == estimator.get_params()
    assert not [name for name in vars(estimator) if name.endswith("_")]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"heads": 3}, "multiple of heads"),
        ({"norm": "x"}, "unknown norm 'x'"),
        ({"featurizer": "x"}, "unknown featurizer 'x'"),
        ({"pretrained": "nowhere"}, "nowhere is neither"),
        ({"frozen_layers": 1}, "frozen_layers needs pretrained"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(InputError, match=message):
        GraphormerRegressor(**{**TINY, **parameters}).fit(SMILES, LENGTH)


def test_fitting_is_quiet_and_leaves_the_random_state_alone(capfd):
    before = torch.get_rng_state()
    GraphormerRegressor(**TINY).fit(SMILES, LENGTH)
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


def test_a_random_state_repeats_a_fit(fitted):
    np.testing.assert_array_equal(clone(fitted).fit(SMILES, LENGTH).predict(SMILES), fitted.predict(SMILES))
    other = clone(fitted).set_params(random_state=1).fit(SMILES, LENGTH)
    assert not np.allclose(other.predict(SMILES), fitted.predict(SMILES))


def test_a_fitted_estimator_is_kept_by_pickle_and_joblib(fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(SMILES), fitted.predict(SMILES))


def test_the_model_inside_can_be_saved(fitted, tmp_path):
    fitted.model_.save_pretrained(tmp_path)
    loaded = GraphormerEmbedder(pretrained=tmp_path).fit(SMILES)
    np.testing.assert_array_equal(loaded.model_.predict(SMILES)[:, 0], fitted.predict(SMILES))


def test_targets_on_their_own_scale_keep_their_names_and_shape():
    targets = pd.DataFrame({"a": LENGTH * 1e4, "b": 5 - LENGTH})
    targets.loc[::3, "a"] = np.nan
    estimator = GraphormerRegressor(**TINY).fit(SMILES, targets)
    prediction = estimator.predict(SMILES)
    assert prediction.shape == (40, 2) and estimator.n_outputs_ == 2
    assert prediction[:, 0].mean() > 1e4 and prediction[:, 1].mean() < 0
    assert estimator.model_.run_config.task.targets == ("a", "b")
    one = GraphormerRegressor(**TINY).fit(SMILES, TABLE.length)
    assert one.predict(SMILES).shape == (40,) and one.model_.run_config.task.targets == ("length",)


def test_classes_are_strings():
    estimator = GraphormerClassifier(**TINY).fit(SMILES, KIND)
    assert estimator.classes_.tolist() == ["acid", "other"]
    probability = estimator.predict_proba(SMILES)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
    assert (estimator.predict(SMILES) == estimator.classes_[probability.argmax(axis=1)]).all()


def test_more_than_two_classes():
    ends = [smiles.lstrip("C")[-1] for smiles in SMILES]
    estimator = GraphormerClassifier(**TINY).fit(SMILES, ends)
    assert estimator.classes_.tolist() == sorted(set(ends))
    probability = estimator.predict_proba(SMILES)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
    assert (estimator.predict(SMILES) == estimator.classes_[probability.argmax(axis=1)]).all()


def test_several_labels_each():
    labels = pd.DataFrame({"acid": KIND == "acid", "long": LENGTH > 8}).astype(int)
    estimator = GraphormerClassifier(**TINY).fit(SMILES, labels)
    assert estimator.predict(SMILES).shape == estimator.predict_proba(SMILES).shape == (40, 2)
    assert set(np.unique(estimator.predict(SMILES))) <= {0, 1}


def test_a_class_too_rare_to_be_set_aside_does_not_stop_a_fit():
    rare = np.where(np.arange(40) == 7, "rare", "common")
    assert set(GraphormerClassifier(**TINY).fit(SMILES, rare).predict(SMILES)) <= {"rare", "common"}


def test_one_class_is_not_enough():
    with pytest.raises(InputError, match="at least 2"):
        GraphormerClassifier(**TINY).fit(SMILES, ["same"] * 40)


@pytest.fixture(scope="module")
def pretrained(fitted, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("pretrained")
    fitted.model_.save_pretrained(folder)
    return str(folder)


def test_embeddings_in_pipelines(pretrained):
    embedder = GraphormerEmbedder(pretrained=pretrained)
    assert make_pipeline(embedder, Ridge(1e-3)).fit(SMILES, LENGTH).score(SMILES, LENGTH) > 0.5
    columns = ColumnTransformer([("embedding", embedder, "smiles"), ("number", "passthrough", ["length"])])
    make_pipeline(columns, LogisticRegression()).fit(TABLE, KIND)
    trained = make_pipeline(GraphormerEmbedder(estimator=GraphormerRegressor(**TINY)), Ridge())
    assert cross_val_score(trained, SMILES, LENGTH, cv=2).shape == (2,)


def test_embeddings_have_names_and_rows(pretrained):
    embedder = GraphormerEmbedder(pretrained=pretrained).set_output(transform="pandas").fit(TABLE.smiles)
    embeddings = embedder.transform(TABLE.smiles[5:9])
    assert embeddings.shape == (4, 8)
    assert embeddings.columns[0] == "graphormerembedder0"
    assert embeddings.index.tolist() == [5, 6, 7, 8]


def test_an_embedder_needs_one_source_of_its_model(pretrained):
    with pytest.raises(InputError, match="not both"):
        GraphormerEmbedder(pretrained=pretrained, estimator=GraphormerRegressor()).fit(SMILES)
    with pytest.raises(InputError, match="requires y"):
        GraphormerEmbedder(estimator=GraphormerRegressor()).fit(SMILES)
    with pytest.raises(NotFittedError):
        GraphormerEmbedder(pretrained=pretrained).transform(SMILES)


def test_fine_tuning_takes_the_architecture_over(pretrained):
    tuned = GraphormerClassifier(epochs=1, random_state=0, pretrained=pretrained, frozen_layers=1).fit(SMILES, KIND)
    assert (tuned.model_.config.layers, tuned.model_.config.width) == (1, 8)
    source = GraphormerEmbedder(pretrained=pretrained).fit(SMILES).model_
    for name, parameter in source.named_parameters():
        unchanged = torch.equal(parameter, tuned.model_.get_parameter(name)) if not name.startswith("head") else False
        assert unchanged == (not name.startswith("head")), name


def test_fitting_writes_no_file(monkeypatch):
    """Neither a run folder nor a picture: the weights of the best epoch are kept in memory."""
    for place in (
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
        "graphormer_sepnorm.system.files.replace_content",
        "os.fsync",
    ):
        monkeypatch.setattr(place, lambda *arguments, **options: pytest.fail("a file is written"))
    GraphormerRegressor(**TINY).fit(SMILES, LENGTH)


def test_the_best_epoch_is_kept_and_not_the_last(monkeypatch):
    scores, seen = {1: 0.5, 2: 0.3, 3: 0.8}, {}

    def evaluate(trainer: Trainer, epoch: int) -> float:
        seen[epoch] = {name: tensor.clone() for name, tensor in trainer.evaluated.state_dict().items()}
        return scores[epoch]

    monkeypatch.setattr(Trainer, "evaluate", evaluate)
    model = GraphormerRegressor(**TINY | {"epochs": 3}).fit(SMILES, LENGTH).model_
    assert model.facts == {"epoch": 2, "val_metric": 0.3} and not model.training
    assert all(torch.equal(tensor, seen[2][name]) for name, tensor in model.state_dict().items())
    assert not all(torch.equal(tensor, seen[3][name]) for name, tensor in model.state_dict().items())
