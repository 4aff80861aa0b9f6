"""Explanations of a whole stack: of what ``predict`` says, and adding up to it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.chem.standardize import label, with_stereo_labels
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explain_table import explain_table, lines_of_molecule
from graphormer_sepnorm.explain.explanations import Explanation, integrated_gradients
from graphormer_sepnorm.predict.predictors import Predictor, load_networks
from graphormer_sepnorm.predict.pretrained import Graphormer
from graphormer_sepnorm.table_model.explain import contributions_by_masking, explain_rows, masked, shares
from graphormer_sepnorm.table_model.fit import fit_table
from graphormer_sepnorm.table_model.load import load_model
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import TableModel
from tests.table_models import Trained
from tests.tiny import save_tiny

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
ASKED = [ASPIRIN, "C", "[Na+].CC(=O)[O-]", "O=c1cccc[nH]1"]


def explained(model, smiles: list[str] = ASKED, target: str | None = None) -> list[Explanation]:
    found = explain_rows(model, smiles, target=target)
    assert all(isinstance(each, Explanation) for each in found.values()), found
    return list(found.values())


def check_sums(explanations: list[Explanation], expected: np.ndarray) -> None:
    """Baseline and contributions add up to what is expected."""
    for explanation, value in zip(explanations, expected, strict=True):
        assert explanation.baseline + explanation.contributions.sum() == pytest.approx(value, abs=1e-4)


@pytest.fixture(scope="module")
def model(trained: Trained) -> TableModel:
    return TableModel.load(trained.run.path)


@pytest.mark.slow
def test_what_is_predicted_is_explained(model):
    assert (model.weights > 0).all(), "all members take part"
    values, found = model.predict(ASKED).values[:, 0], explained(model)
    np.testing.assert_allclose([each.prediction for each in found], values, rtol=1e-5)
    check_sums(found, values)
    assert found[0].start == "average atoms or masked atoms" and found[0].meaning == "contribution to a"
    assert found[0].contributions.shape == (13,) and found[0].caption == f"a = {values[0]:.3g}"


@pytest.mark.slow
def test_contributions_to_labels_far_from_zero_add_up_to_the_prediction(model):
    """Members learn the differences from the offset, which belongs to the baseline."""
    far = 1_000_000.0

    def away(task: TaskConfig) -> TaskConfig:
        return replace(task, mean=(task.mean[0] + far,), offset=(far,))

    near_networks = model.members["networks"].networks
    networks = [(net, replace(config, task=away(config.task)), facts) for net, config, facts in near_networks]
    members = {**model.members, "networks": NetworksMember(networks)}
    distant = replace(model, task=away(model.task), members=members)
    (near,), (found,) = explained(model, [ASPIRIN]), explained(distant, [ASPIRIN])
    np.testing.assert_allclose(found.contributions, near.contributions, atol=1e-4)
    assert found.baseline - far == pytest.approx(near.baseline, abs=1e-4)
    assert found.prediction - far == pytest.approx(near.prediction, abs=1e-4)
    written = [float(cell) for line in lines_of_molecule(1, found) for cell in (line[3], line[5])]
    assert written == pytest.approx([found.prediction, found.baseline] * len(written[::2]), abs=1e-4, rel=0)


@pytest.mark.slow
def test_members_count_as_they_are_weighed(model):
    def only(*names: str) -> Explanation:
        weights = np.array([[float(name in names)] for name in model.members])
        return explained(replace(model, weights=weights / weights.sum()), [ASPIRIN])[0]

    parts = {name: only(name) for name in model.members}
    whole = explained(model, [ASPIRIN])[0]
    starts = {name: part.start for name, part in parts.items()}
    assert starts == {name: "average atoms" if name == "networks" else "masked atoms" for name in MEMBERS}
    masked = (parts["kernel"].contributions + parts["forest"].contributions) / 2
    np.testing.assert_allclose(only("kernel", "forest").contributions, masked, rtol=1e-6)
    weights = dict(zip(model.members, model.weights[:, 0], strict=True))
    expected = sum(weights[name] * part.contributions for name, part in parts.items())
    np.testing.assert_allclose(whole.contributions, expected, rtol=1e-5, atol=1e-6)


def log_odds(probability: np.ndarray) -> np.ndarray:
    probability = probability.astype(np.float64)
    return np.log(probability / (1 - probability))


@pytest.mark.slow
def test_of_a_probability_contributions_add_up_to_log_odds(classes, to_fit):
    model = fit_table(replace(to_fit, labels=classes)).model
    for column, target in enumerate(model.targets):
        values, found = model.predict(ASKED).values[:, column], explained(model, target=target)
        np.testing.assert_allclose([each.prediction for each in found], values, rtol=1e-4)
        check_sums(found, log_odds(values))
        assert found[0].meaning == f"contribution to log-odds of {target}"


def test_of_several_networks_the_mean(tmp_path):
    folders = [str(save_tiny(tmp_path / f"{seed}", featurizer="mol", seed=seed)) for seed in range(2)]
    (found,) = explained(Predictor(load_networks(folders)), [ASPIRIN])
    parts = [integrated_gradients(Graphormer.from_pretrained(folder), ASPIRIN) for folder in folders]
    np.testing.assert_allclose(found.contributions, (parts[0].contributions + parts[1].contributions) / 2, rtol=1e-4)


@pytest.mark.slow
def test_attention_is_of_one_network(model, tmp_path):
    with pytest.raises(InputError, match="attention explains a single network"):
        explain_rows(model, [ASPIRIN], "attention")
    one = Predictor(load_networks([save_tiny(tmp_path / "run", featurizer="mol")]))
    (found,) = explain_rows(one, [ASPIRIN], "attention").values()
    (short,) = explain_rows(one, [ASPIRIN], "attention", decimals=dict.fromkeys(one.targets, 5)).values()
    assert short.caption == f"{one.targets[0]} = {found.prediction:.5f}"
    assert found.contributions.sum() == pytest.approx(1) and found.baseline is None


@pytest.mark.slow
def test_the_conditions_of_a_molecule_are_held_fixed(conditioned, tmp_path):
    model, table = TableModel.load(conditioned.path), tmp_path / "in.csv"
    assert (model.weights > 0).all(), "all members take part"
    table.write_text(f"smiles,T,assay\n{ASPIRIN},25,a\n{ASPIRIN},60,b\nC,25,c\n")
    explain = partial(explain_rows, model)
    found, problems = explain_table(explain, str(table), tmp_path / "out.csv", conditions=model.asked_conditions)
    assert found.keys() == {0, 1} and str(problems[2]) == "assay is 'c': the model knows a, b"
    samples = [Sample(ASPIRIN, ("25.0", "a")), Sample(ASPIRIN, ("60.0", "b"))]
    values = model.predict(samples).values[:, 0]
    np.testing.assert_allclose([each.prediction for each in found.values()], values, rtol=1e-5)
    assert abs(values[1] - values[0]) > 0.1
    check_sums(list(found.values()), values)
    table = pd.DataFrame({"smiles": [ASPIRIN], "T": [60]})
    (again,) = load_model(conditioned.path).explain(table, conditions={"assay": "b"})
    np.testing.assert_allclose(again.contributions, found[1].contributions, rtol=1e-5)


def test_a_member_without_a_prediction_leaves_its_weight_to_the_others():
    np.testing.assert_allclose(shares(np.array([1.0, np.nan, 2.0]), np.array([0.2, 0.5, 0.3])), [0.4, 0, 0.6])


MOL = Chem.MolFromSmiles(ASPIRIN)


def by_masking(mol: Chem.Mol, predict) -> tuple[np.ndarray, float]:
    return contributions_by_masking(mol, lambda hidden: predict([masked(mol, atoms) for atoms in hidden]))


def test_stereo_labels_are_those_of_the_whole_molecule():
    mol = with_stereo_labels(Chem.MolFromSmiles("C[C@H](N)C(=O)O/C=C/C"))
    assert [label(atom) for atom in masked(mol, [0, 2]).GetAtoms()] == ["", "S", *[""] * 7]
    assert [label(atom) for atom in masked(mol, [1]).GetAtoms()] == [""] * 9
    for atoms, expected in (([0], "E"), ([6], "")):
        assert label(masked(mol, atoms).GetBondBetweenAtoms(6, 7)) == expected


def test_of_a_sum_over_atoms_each_adds_its_own():
    values = {"C": 1.0, "O": -2.0, "*": 0.25}

    def predict(mols: list[Chem.Mol]) -> np.ndarray:
        return np.array([sum(values[atom.GetSymbol()] for atom in mol.GetAtoms()) for mol in mols])

    contributions, base = by_masking(MOL, predict)
    assert base == 0.25 * 13
    expected = [values[atom.GetSymbol()] - 0.25 for atom in MOL.GetAtoms()]
    np.testing.assert_allclose(contributions, expected, rtol=1e-12)


def count_of_environments(mols: list[Chem.Mol]) -> np.ndarray:
    """A function of atoms together, which no sum over atoms gives."""
    spellings = [Chem.MolToSmiles(mol) for mol in mols]
    return np.array([len(text) ** 1.5 + 10.0 * text.count("*C") for text in spellings])


@pytest.mark.parametrize("smiles", ["OC(=O)c1ccccc1OC(C)=O", "c1ccc(OC(C)=O)c(C(=O)O)c1"])
def test_contributions_add_up_and_follow_their_atoms_in_every_spelling(smiles):
    here, base = by_masking(MOL, count_of_environments)
    other = Chem.MolFromSmiles(smiles)
    there, other_base = by_masking(other, count_of_environments)
    whole, nothing = count_of_environments([MOL, masked(MOL, range(13))])
    assert base == other_base == nothing
    assert here.sum() == pytest.approx(whole - nothing)
    np.testing.assert_allclose(there[list(other.GetSubstructMatch(MOL))], here, rtol=1e-9)
