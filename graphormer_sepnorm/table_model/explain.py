"""Atom contributions to the prediction of a table model, exactly as ``predict`` computes it.

Networks are explained by gradients, other members by masking atoms: a dummy atom stands for one that is unknown to all
features. Axis letters: n atoms of one molecule, O orders of them, K members, S masked molecules, T targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from rdkit import Chem
from scipy.special import expit

from graphormer_sepnorm.chem.features import FEATURIZERS, Molecules, Sample, read_molecules
from graphormer_sepnorm.chem.smiles import one_molecule
from graphormer_sepnorm.chem.standardize import STEREO_LABEL
from graphormer_sepnorm.config import Config
from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.explain import explanations
from graphormer_sepnorm.explain.explanations import METHODS, Attributions, ExplainedTarget, Explanation
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.output.column import condition_value
from graphormer_sepnorm.predict.classes import limited_logit
from graphormer_sepnorm.predict.predictors import PredictingModel, computed
from graphormer_sepnorm.predict.pretrained import Graphormer
from graphormer_sepnorm.predict.side_by_side import SideBySide
from graphormer_sepnorm.predict.trust import calibrated
from graphormer_sepnorm.system.workers import Smiles
from graphormer_sepnorm.table_model.features import MoleculeFeatures, condition_values, needs
from graphormer_sepnorm.table_model.members.base import Member
from graphormer_sepnorm.table_model.members.networks import NetworksMember
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.stacking import weighted_mean
from graphormer_sepnorm.tasks import TASKS

AVERAGE, MASKED = "average atoms", "masked atoms"
TUNED = "tuned kernel"  # reads the outputs of other members
ORDERS = 4  # of masking
LEAST_DIFFERENCE = 1e-6  # smallest sum of contributions that is rescaled to another scale


def explain_rows(
    model: PredictingModel,
    smiles: Smiles,
    method: str = "gradients",
    target: str | None = None,
    decimals: Mapping[str, int] | None = None,
) -> dict[int, Explanation | InputError]:
    """By row, the explanation of its molecule, or the reason why it cannot be read; conditions are held fixed."""
    one_of("method", method, METHODS)
    if isinstance(model, SideBySide):
        number, own = model.owner(target)
        known_decimals = (decimals or {}).get(target or model.targets[0])
        digits = {} if known_decimals is None else {own: known_decimals}
        samples = [model.sample_for(number, sample) for sample in smiles]
        return explain_rows(model.part_models[number], samples, method, own, digits)
    if names := model.asked_conditions.columns:
        found: dict[int, Explanation | InputError] = {}
        for row, sample in enumerate(smiles):
            if not isinstance(sample, Sample):
                raise InputError(f"the prediction {needs(names)}")
            try:
                fixed = model.under(dict(zip(names, sample.conditions, strict=True)))
            except InputError as error:
                found[row] = error
            else:
                found[row] = explain_rows(fixed, [sample.smiles], method, target, decimals)[0]
        return found
    stack = stack_of(model)
    view = ExplainedTarget(stack.task, model.device, target, decimals)
    if method == "gradients":
        return explanations.explained_rows(partial(explain_stack, model, stack, view), model.featurizer, smiles)
    if list(stack.members) != ["networks"] or len(stack.models) > 1:
        raise InputError(f"the method {method} explains a single network: name one, such as model-0 in the run folder")
    explain = partial(METHODS[method], Graphormer.of(*stack.models[0]), target=target, decimals=decimals)
    return explanations.explained_rows(explain, model.featurizer, smiles)


def stack_of(model: PredictingModel) -> TableModel:
    if isinstance(model, TableModel):
        return model
    members: dict[str, Member] = {"networks": NetworksMember([(*pair, {}) for pair in model.models])}
    return TableModel(model.models[0][1].task, model.featurizer, members, np.ones((1, len(model.targets))), model.trust)


def explain_stack(model: PredictingModel, stack: TableModel, view: ExplainedTarget, smiles: str) -> Explanation:
    """Contributions of the atoms to a target: with the baseline they add up to the prediction, or to its log-odds."""
    read = read_molecules(model.featurizer, [smiles])
    if read.errors[0]:
        raise InputError(read.errors[0])
    read = model.ready(read)
    outputs = computed(read, stack.outputs)
    own = outputs if stack is model else computed(read, model.outputs)
    prediction = float(model.predictions(read, own).values[0, view.column])
    by_member = stack.stacked(stack.features(read, outputs)).by_member
    parts = parts_by_baseline(stack, view, smiles, shares(by_member[:, 0, view.column], stack.weights[:, view.column]))
    offset = stack.task.offset[view.column] if stack.task.offset else 0.0
    contributions = np.sum([part.contributions for part in parts.values()], axis=0)
    whole = Attributions(contributions, offset + sum(part.baseline for part in parts.values()))
    if view.is_probability:
        whole = rescaled(whole, partial(log_odds, stack, by_member, view.column))
    explanation = replace(view.explanation(smiles, prediction, whole), start=" or ".join(parts))
    fixed = ((name, condition_value(text)) for name, text in model.asked_conditions.given.items())
    if conditions := {name: value if isinstance(value, str) else f"{value:.7g}" for name, value in fixed}:
        words = ", ".join(f"{name} {text or 'blank'}" for name, text in conditions.items())
        return replace(explanation, caption=f"{explanation.caption} ({words})", conditions=conditions)
    return explanation


def shares(predictions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights [K] of the members for a molecule; the weight of a member without a prediction (NaN) is redistributed."""
    present = np.where(np.isnan(predictions), 0.0, weights)
    return present / present.sum()


def parts_by_baseline(
    model: TableModel, view: ExplainedTarget, smiles: str, weights: np.ndarray
) -> dict[str, Attributions]:
    """Weighted contributions to what the members predict, by baseline; members with weight 0 are left out."""
    by_part: dict[str, Attributions] = {}
    others = {name: weight for name, weight in zip(model.members, weights.tolist(), strict=True) if weight}
    networks, weight = model.members.get("networks"), others.pop("networks", 0.0)
    if networks and weight:
        values = model.conditions.encode(())
        parts = [by_gradients(*network, view.name, smiles, values) for network in networks.models]
        contributions = weight * np.mean([part.contributions for part in parts], axis=0)
        by_part[AVERAGE] = Attributions(contributions, weight * float(np.mean([part.baseline for part in parts])))
    if others:
        _, mol = FEATURIZERS[model.featurizer].read(smiles)
        with one_molecule(smiles):
            predict = partial(predict_masked, model, others, view.column, mol)
            by_part[MASKED] = Attributions(*contributions_by_masking(mol, predict))
    return by_part


def by_gradients(model: Network, config: Config, target: str, smiles: str, conditions: list[float]) -> Attributions:
    """Contributions to a network's predicted difference from the offset or probability, under conditions [C]."""
    view = ExplainedTarget(config.task.differences, model.cls.device, target)
    molecule = explanations.EmbeddedMolecule(model, config.featurizer, smiles, conditions)
    gradients = explanations.attributions(molecule, view.value)
    return rescaled(gradients, lambda value: float(expit(value))) if view.is_probability else gradients


def predict_masked(
    model: TableModel, weights: dict[str, float], column: int, mol: Chem.Mol, hidden: list[Sequence[int]]
) -> np.ndarray:
    """Weighted sum [S] of what members predict of a target if atoms are hidden; stereo labels are kept."""
    mols = [masked(mol, atoms) for atoms in hidden]
    conditions = np.tile(np.array(model.conditions.encode(()), np.float32), (len(mols), 1))
    features, reader = MoleculeFeatures(mols, {condition_values: conditions}), FEATURIZERS[model.featurizer]
    read = model.members if TUNED in weights else {name: model.members[name] for name in weights}
    if any(member.outputs for member in read.values()):
        parent = reader.prepare(mol, "")
        graphs = reader.pack([reader.features_as_prepared(masked(parent, atoms)) for atoms in hidden])
        molecules = Molecules.of_graphs(replace(graphs, conditions=conditions))
        for member in read.values():
            features.computed |= member.computed(computed(molecules, member.outputs))
    by_member = np.stack([model.members[name].predict(features)[:, [column]] for name in weights])
    shares = np.array(list(weights.values()))[:, None]
    return shares.sum() * weighted_mean(by_member, shares)[:, 0]


def log_odds(model: TableModel, by_member: np.ndarray, column: int, probability: float) -> float:
    total = weighted_mean(by_member, model.weights).sum() if TASKS[model.kind].adds_up else 1.0
    values = np.full((1, by_member.shape[2]), np.clip(probability / total, 0, 1))
    return float(limited_logit(calibrated(values, model.trust))[0, column])


def rescaled(attributions: Attributions, to: Callable[[float], float]) -> Attributions:
    """Contributions on the scale of ``to``: multiplied by one factor, so that they still add up."""
    start, end = attributions.baseline, attributions.baseline + attributions.contributions.sum()
    if abs(end - start) < LEAST_DIFFERENCE:
        start, end = start - LEAST_DIFFERENCE, start + LEAST_DIFFERENCE
    factor = (to(end) - to(start)) / (end - start)
    return Attributions(factor * attributions.contributions, to(attributions.baseline))


def masked(mol: Chem.Mol, atoms: Sequence[int]) -> Chem.Mol:
    copy = Chem.Mol(mol)
    for number in atoms:
        atom = copy.GetAtomWithIdx(int(number))
        atom.SetAtomicNum(0)
        atom.SetFormalCharge(0)
        atom.SetIsotope(0)
        atom.SetNumExplicitHs(0)
        atom.SetNoImplicit(True)
        atom.SetNumRadicalElectrons(0)
        atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
        for part in (atom, *atom.GetBonds()):
            part.ClearProp(STEREO_LABEL)
    copy.UpdatePropertyCache(strict=False)
    return copy


def contributions_by_masking(
    mol: Chem.Mol, predict: Callable[[list[Sequence[int]]], np.ndarray]
) -> tuple[np.ndarray, float]:
    """Contributions [n] of atoms to a prediction, and the prediction with all of them masked.

    They estimate Shapley values (Castro, Gomez and Tejada, 2009): the mean change over several orders of masking, with
    equivalent atoms averaged. The orders, each also reversed, do not depend on how the SMILES is written. ``predict``
    maps S lists of masked atoms to predictions [S].
    """
    canonical, atoms = np.argsort(list(Chem.CanonicalRankAtoms(mol, breakTies=True))), mol.GetNumAtoms()
    generator = np.random.default_rng(0)
    drawn = [canonical[generator.permutation(atoms)] for _ in range(ORDERS // 2)]
    orders = [order for each in drawn for order in (each, each[::-1])]
    steps = [order[:count].tolist() for order in orders for count in range(1, atoms)]
    predicted = predict([[], range(atoms), *steps])
    contributions, (whole, nothing) = np.zeros(atoms), predicted[:2]
    for order, between in zip(orders, predicted[2:].reshape(len(orders), -1), strict=True):
        contributions[order] -= np.diff([whole, *between, nothing]) / len(orders)
    kinds = np.array(list(Chem.CanonicalRankAtoms(mol, breakTies=False)))
    return (np.bincount(kinds, contributions) / np.maximum(np.bincount(kinds), 1))[kinds], float(nothing)
