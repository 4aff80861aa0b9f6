"""Preparations of molecules before they are read: the largest part, the neutral parent, a canonical tautomer.

A preparation is a function from a molecule to another one; ``PREPARATIONS`` has them by name, and the name of a model's
featurizer ends in that of its preparation, so that predictions prepare molecules as training did.
"""

from collections.abc import Callable

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import largest_fragment, one_molecule


def parent(mol: Chem.Mol) -> Chem.Mol:
    """The neutral parent: bonds to metals cut, groups written one way, the largest organic part, charges neutralised.

    Charges that no hydrogen balances stay, such as that of a quaternary ammonium. Source: RDKit's ``rdMolStandardize``,
    after MolVS of Matt Swain.

    Raises:
        InputError: RDKit fails on the molecule.
    """
    from rdkit.Chem.MolStandardize import rdMolStandardize  # its import takes a while

    with one_molecule():
        cleaned = largest_fragment(rdMolStandardize.Cleanup(Chem.Mol(mol)))
        return rdMolStandardize.Uncharger().uncharge(cleaned)


def canonical_tautomer(mol: Chem.Mol) -> Chem.Mol:
    """One tautomer of the ``parent``, the same for all of them; raises InputError as ``parent``.

    Which one it is follows RDKit's scores, so it may not be the most stable one.
    """
    from rdkit.Chem.MolStandardize import rdMolStandardize

    neutral = parent(mol)
    with one_molecule():
        return rdMolStandardize.TautomerEnumerator().Canonicalize(neutral)


PREPARATIONS: dict[str, Callable[[Chem.Mol], Chem.Mol]] = {
    "without-salts": largest_fragment,
    "standardized": parent,
    "tautomer": canonical_tautomer,
}
