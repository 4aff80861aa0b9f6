"""Atom contributions by masking: a masked atom is replaced by a dummy atom, as if it were unknown to all features.

Axis letters: n atoms of one molecule, O orders of them, S masked molecules."""

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem

from graphormer_sepnorm.chem.stereo import LABEL

ORDERS = 4


def masked(mol: Chem.Mol, atoms: Sequence[int]) -> Chem.Mol:
    """A copy of a molecule in which only the bonds of some atoms are known; stereo labels of the others are kept."""
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
            part.ClearProp(LABEL)
    copy.UpdatePropertyCache(strict=False)
    return copy


def masking_orders(mol: Chem.Mol) -> np.ndarray:
    """Orders in which atoms are masked, each also reversed, independent of how the SMILES is written: int64 [O, n]."""
    canonical = np.argsort(list(Chem.CanonicalRankAtoms(mol, breakTies=True)))
    generator = np.random.default_rng(0)
    drawn = [canonical[generator.permutation(len(canonical))] for _ in range(ORDERS // 2)]
    return np.array([order for each in drawn for order in (each, each[::-1])], np.int64)


def contributions_by_masking(
    mol: Chem.Mol, predict: Callable[[list[Sequence[int]]], np.ndarray]
) -> tuple[np.ndarray, float]:
    """Contributions [n] of atoms to a prediction, and the prediction with all of them masked.

    They estimate Shapley values (Castro, Gomez and Tejada, 2009): the mean change over several orders of masking, with
    equivalent atoms averaged. ``predict`` maps S lists of masked atoms to predictions [S].
    """
    orders, atoms = masking_orders(mol), mol.GetNumAtoms()
    steps = [order[:count].tolist() for order in orders for count in range(1, atoms)]
    predicted = predict([[], range(atoms), *steps])
    whole, nothing = predicted[0], predicted[1]
    contributions = np.zeros(atoms)
    for order, between in zip(orders, predicted[2:].reshape(len(orders), -1), strict=True):
        contributions[order] -= np.diff([whole, *between, nothing]) / len(orders)
    kinds = np.array(list(Chem.CanonicalRankAtoms(mol, breakTies=False)))
    shared = np.bincount(kinds, contributions) / np.maximum(np.bincount(kinds), 1)
    return shared[kinds], float(nothing)
