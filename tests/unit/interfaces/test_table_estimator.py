"""How estimators fit a table model: what their parameters mean, and that it is the model of the command."""

import inspect
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from sklearn.metrics import roc_auc_score

from graphormer_sepnorm import GraphormerClassifier, GraphormerRegressor, load_model
from graphormer_sepnorm.config import TaskConfig, TrainConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.commands.train import EnsembleOptions
from graphormer_sepnorm.interfaces.table_estimator import make_config
from graphormer_sepnorm.options import declared
from graphormer_sepnorm.tables.options import TableOptions
from tests.unit.interfaces.test_sklearn import LENGTH, SMILES

QUICK = {"quick": True}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_shell_python_and_estimator_say_the_same(command, smiles, logp, tmp_path, kind, tiny_recipe):
    """Of all members; a label is a bound."""
    y = logp[:60, 0] if kind == "regression" else (logp[:60, 0] > np.median(logp[:60, 0])).astype(int)
    table = pd.DataFrame({"smiles": smiles[:60], "y": y}).astype({"y": object})
    if kind == "regression":
        table.loc[3, "y"] = "<5"
    table.to_csv(tmp_path / "in.csv", index=False)
    options = ("--seed", 3, "--recipe", tiny_recipe, "--ensemble", 2, "--standardize", "parent")
    assert command("train", tmp_path / "in.csv", "--target-columns", "y", *options, "--out", tmp_path / "run")[0] == 0
    pd.DataFrame({"smiles": smiles[60:80]}).to_csv(tmp_path / "asked.csv", index=False)
    assert command("predict", tmp_path / "run", tmp_path / "asked.csv", "-o", tmp_path / "said.csv")[0] == 0
    shell = pd.read_csv(tmp_path / "said.csv")
    python = load_model(tmp_path / "run").predict(smiles[60:80])
    np.testing.assert_allclose(python[["y", "y_std"]], shell[["y", "y_std"]], rtol=1e-6)

    splits = pd.read_csv(tmp_path / "run" / "table.csv").split
    learnt = table[(splits != "test").to_numpy()]
    parameters = {"recipe": tiny_recipe, "networks": 2, "standardize": "parent"}
    if kind == "regression":
        regressor = GraphormerRegressor(random_state=3, **parameters).fit(learnt.smiles, learnt.y)
        values, spread = regressor.predict(smiles[60:80], return_std=True)
        np.testing.assert_allclose(spread, shell.y_std, rtol=1e-5)
    else:
        classifier = GraphormerClassifier(random_state=3, **parameters).fit(learnt.smiles, learnt.y.astype(int))
        values = classifier.predict_proba(smiles[60:80])[:, 1]
    np.testing.assert_allclose(values, shell.y, rtol=1e-5)


def test_the_constructor_has_every_option_of_training_and_describes_it():
    parameters, described = GraphormerClassifier().get_params(), inspect.getdoc(GraphormerClassifier.__init__)
    options = {each.field for each in declared(TrainConfig, without=("seed", "patience", "keep"))}
    assert options <= set(parameters) and all(parameters[name] is None for name in options)
    entries = [name for line in re.findall(r"\n    ([a-z_, ]+): ", described) for name in line.split(", ")]
    assert sorted(entries) == sorted(parameters)


def test_a_target_needs_a_label_of_positive_weight():
    y = np.stack([LENGTH, np.where(np.arange(len(LENGTH)) < 8, LENGTH, np.nan)], axis=1)
    weight = np.where(np.arange(len(LENGTH)) < 8, 0, 1)
    with pytest.raises(InputError, match=r"^all exact labels of target y1 have the sample weight 0$"):
        GraphormerRegressor(**QUICK).fit(SMILES, y, sample_weight=weight)


@pytest.mark.slow
def test_the_config_is_that_of_the_recipe_with_what_is_given(tiny_recipe):
    def config(**parameters):
        task = TaskConfig("regression", "mae", ("a",))
        return make_config(GraphormerRegressor(**parameters)._parameters(), task, "mol", 7)

    default = config()
    assert (default.train.start_from, default.train.seed, default.featurizer) == ("foundation", 7, "mol")
    given = config(epochs=np.int64(3), lr=np.float64(0.1), optimizer="muon")
    assert (given.train.epochs, given.train.min_updates, given.train.lr, given.train.optimizer) == (3, 0, 0.1, "muon")
    slim = config(recipe="slim", settings={"model.layers": 4})
    assert slim.train.start_from is None and slim.model.layers == 4
    frozen = config(recipe="slim", pretrained="foundation-mini", frozen_layers=2, frozen_statistics=True)
    assert (frozen.train.frozen_layers, frozen.train.frozen_statistics) == (2, True)
    with pytest.raises(InputError, match=r"foundation, whose model is another one \(layers: 8, now 6\)"):
        config(settings={"model.layers": 6})
    with pytest.raises(InputError, match="cannot freeze 99 layers"):
        config(settings={"train.frozen_layers": 99})


def test_parameters_have_the_defaults_of_the_command():
    parameters, command = GraphormerRegressor().get_params(), EnsembleOptions()
    found = [parameters[name] for name in ("networks", "forest", "blend", "quick")]
    assert found == [command.ensemble, command.baseline, command.blend, command.quick]
    options = TableOptions("a", ("a",))
    for name in ("split", "metric", "loss", "weights", "balance", "strip_salts", "standardize"):
        assert parameters[name] == getattr(options, name), name


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 0}, "epochs"),
        ({"settings": {"train.patience": 3}}, "patience is only for benchmark datasets"),
        ({"recipe": "slim", "frozen_layers": 1}, "frozen_layers needs pretrained"),
        ({"networks": 1}, "one per fold, so at least 2"),
        ({"networks": "5"}, "^networks should be a valid integer, not '5'$"),
        ({"weights": [1, 2]}, r"^1 targets of a regression, but 2 weights$"),
        ({"weights": ["a"]}, r"^weights: give a number for each target, such as \[1, 0.5\], not \['a'\]$"),
        ({"standardize": "parents"}, "unknown standardize 'parents'.*did you mean 'parent'"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(InputError, match=message):
        GraphormerRegressor(**QUICK | parameters).fit(SMILES, LENGTH)


@pytest.mark.slow
def test_fitting_is_quiet_and_leaves_the_random_state_alone(capfd, tiny_recipe):
    before = torch.get_rng_state()
    GraphormerRegressor(recipe=tiny_recipe, networks=2, forest=False).fit(SMILES, LENGTH)
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_repeats_are_averaged_as_by_the_command(command, tmp_path):
    """Repeats in other spellings and a missing label; predictions out of fold stay in the order of the rows."""
    smiles = [*SMILES, *(Chem.MolToSmiles(Chem.MolFromSmiles(text), rootedAtAtom=1) for text in SMILES[::3])]
    y = np.array([*LENGTH, *(LENGTH[::3] + 4)])
    y[1] = np.nan
    weight = np.linspace(1, 2, len(y))
    table = pd.DataFrame({"smiles": smiles, "y": y, "weight": weight})
    table["split"] = [{0: "val", 2: "test"}.get(len(text) % 5, "train") for text in [*SMILES, *SMILES[::3]]]
    table.to_csv(tmp_path / "in.csv", index=False)
    columns = ("--split", "column", "--split-column", "split", "--weight-column", "weight", "--target-columns", "y")
    assert command("train", tmp_path / "in.csv", *columns, "--quick", "--out", tmp_path / "run")[0] == 0
    by_command = load_model(tmp_path / "run").predict(SMILES).y
    learnt = table[table.split != "test"]
    estimator = GraphormerRegressor(**QUICK, split="random").fit(learnt.smiles, learnt.y, learnt.weight)
    np.testing.assert_allclose(estimator.predict(SMILES), by_command, rtol=1e-5)
    assert not np.allclose(estimator.predict(SMILES), GraphormerRegressor(**QUICK).fit(SMILES, LENGTH).predict(SMILES))

    found, keys = estimator.out_of_fold_, [Chem.CanonSmiles(text) for text in learnt.smiles]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(learnt.y))
    molecules = pd.DataFrame({"key": keys, "found": found}).dropna().groupby("key").found
    assert (molecules.nunique() == 1).all() and (molecules.size() > 1).sum() > 5
    assert np.corrcoef(found[~np.isnan(found)], learnt.y.dropna())[0, 1] > 0.5


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A folder that an estimator saved."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    y = pd.Series(LENGTH, name="length").astype(object)
    y[4] = "<9"
    GraphormerRegressor(**QUICK).fit(SMILES, y).save(folder)
    return folder


@pytest.mark.slow
def test_no_training_replaces_a_model_saved_from_python(saved, command, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(saved, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    pd.DataFrame({"smiles": SMILES, "other": -LENGTH}).to_csv(tmp_path / "other.csv", index=False)
    pd.DataFrame({"smiles": SMILES, "length": LENGTH}).to_csv(tmp_path / "same.csv", index=False)
    for table in ("other", "same"):
        for options in ((), ("--resume",), ("--quick", "--resume"), ("--folds", 3)):
            given = [tmp_path / f"{table}.csv", *options, "--split", "random", "--out", folder]
            code, _, message = command("train", *given)
            assert code == 2 and f"error: {folder} holds a " in message and "choose another --out" in message
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_a_model_saved_from_python_is_scored_on_another_table(saved, command, tmp_path):
    asked, length = ["CCCCCCCCCCCCO", "CCCCCCCCCCCC(=O)O", "CCCCCCCCCCCCN", SMILES[3]], np.array([13.0, 17, 13, 9])
    pd.DataFrame({"smiles": asked, "length": length}).to_csv(tmp_path / "new.csv", index=False)
    _, result, _ = command("evaluate", saved, "--csv", tmp_path / "new.csv")
    predicted = load_model(saved).predict(asked).length
    assert result["value"] == pytest.approx(np.abs(predicted - length).mean(), rel=1e-5)
    assert (result["n"], result["tested_in_training"]) == (4, 1)
    of_the_mean = np.abs(np.delete(LENGTH, 4).mean() - length).mean()
    assert result["targets"]["length"]["scores"]["mean"]["mae"] == pytest.approx(of_the_mean, rel=1e-5)
    _, facts, _ = command("info", saved)
    assert (facts["training_data"], facts["molecules"], facts["training"]) == ("given in Python", 40, None)
    for refused in (("evaluate", saved), ("compare", saved, tmp_path)):
        code, _, message = command(*refused)
        assert code == 2 and f"{saved} was saved from Python and has no test molecules: " in message


@pytest.mark.slow
@pytest.mark.parametrize("words", [("active", "inactive"), (1, 0), (True, False)])
def test_a_classifier_saved_from_python_is_scored_on_another_table(words, command, tmp_path):
    y = pd.Series(np.where(LENGTH.mean() < LENGTH, *words), name="long")
    classifier = GraphormerClassifier(**QUICK).fit(SMILES, y)
    classifier.save(tmp_path / "model")
    pd.DataFrame({"smiles": SMILES, "long": y}).to_csv(tmp_path / "new.csv", index=False)
    _, result, _ = command("evaluate", tmp_path / "model", "--csv", tmp_path / "new.csv")
    place = classifier.classes_.tolist().index(words[0])
    expected = roc_auc_score(y == words[0], classifier.predict_proba(SMILES)[:, place])
    assert result["value"] == pytest.approx(expected) and result["tested_in_training"] == 40
