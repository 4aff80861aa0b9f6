"""Preparation of molecules before featurization: largest fragment, neutral parent, canonical tautomer.

A preparation is a function from molecule to molecule, named in ``PREPARATIONS``. The name of a model's featurizer ends
in that of its preparation, so predictions prepare molecules as training did.
"""

from collections.abc import Callable

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import largest_fragment, one_molecule


def parent(mol: Chem.Mol) -> Chem.Mol:
    """The neutral parent: metals disconnected, groups normalized, largest organic fragment, charges neutralized.

    Charges that no hydrogen can balance remain, such as that of a quaternary ammonium. Source: RDKit's
    ``rdMolStandardize``, after MolVS by Matt Swain.

    Raises:
        InputError: RDKit fails on the molecule.
    """
    from rdkit.Chem.MolStandardize import rdMolStandardize  # its import takes a while

    with one_molecule():
        cleaned = largest_fragment(rdMolStandardize.Cleanup(Chem.Mol(mol)))
        return rdMolStandardize.Uncharger().uncharge(cleaned)


def canonical_tautomer(mol: Chem.Mol) -> Chem.Mol:
    """A canonical tautomer of the ``parent``, the same for all its tautomers; raises InputError as ``parent``.

    It is chosen by RDKit's scores and is not necessarily the most stable one.
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
