"""What an atom adds to a prediction, by masking: in its place there is a kind of atom that no molecule has.

All that is computed of a molecule then changes as if nothing were known of the atom: environments in fingerprints,
descriptors and embeddings.

Axis letters: n atoms of one molecule, O orders of them, S masked molecules.
"""

from collections.abc import Callable, Sequence

import numpy as np
from rdkit import Chem

ORDERS = 4


def masked(mol: Chem.Mol, atoms: Sequence[int]) -> Chem.Mol:
    """A copy of a molecule in which nothing is known of some atoms but their bonds."""
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
    copy.UpdatePropertyCache(strict=False)
    return copy


def masking_orders(mol: Chem.Mol) -> np.ndarray:
    """Orders in which the atoms are masked, the same for all spellings, each also reversed: int64 [O, n]."""
    canonical = np.argsort(list(Chem.CanonicalRankAtoms(mol, breakTies=True)))
    generator = np.random.default_rng(0)
    drawn = [canonical[generator.permutation(len(canonical))] for _ in range(ORDERS // 2)]
    return np.array([order for each in drawn for order in (each, each[::-1])], np.int64)


def contributions_by_masking(
    mol: Chem.Mol, predict: Callable[[list[Chem.Mol]], np.ndarray]
) -> tuple[np.ndarray, float]:
    """What each atom adds to a prediction, and the prediction when all atoms are masked.

    A contribution is what masking the atom changes, the mean over orders in which the atoms are masked one after
    another, an estimate of its Shapley value; equivalent atoms share theirs. All of them add up to the difference
    between the prediction for the molecule and the one when all atoms are masked.

    Source: Castro, Gomez and Tejada, "Polynomial calculation of the Shapley value based on sampling", Computers &
    Operations Research 2009.

    Args:
        mol: the molecule.
        predict: from S molecules to numbers [S].

    Returns:
        float64 [n], and a number.
    """
    orders, atoms = masking_orders(mol), mol.GetNumAtoms()
    steps = [masked(mol, order[:count]) for order in orders for count in range(1, atoms)]
    predicted = predict([mol, masked(mol, range(atoms)), *steps])
    whole, nothing = predicted[0], predicted[1]
    contributions = np.zeros(atoms)
    for order, between in zip(orders, predicted[2:].reshape(len(orders), -1), strict=True):
        contributions[order] -= np.diff([whole, *between, nothing]) / len(orders)
    kinds = np.array(list(Chem.CanonicalRankAtoms(mol, breakTies=False)))
    shared = np.bincount(kinds, contributions) / np.maximum(np.bincount(kinds), 1)
    return shared[kinds], float(nothing)
