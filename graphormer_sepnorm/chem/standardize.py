"""Preparation of molecules before featurization: largest fragment, neutral parent, canonical tautomer, ChEMBL's parent.

A preparation is a function from molecule to molecule, named in ``PREPARATIONS``. The name of a model's featurizer ends
in that of its preparation, so predictions prepare molecules as training did.
"""

from collections.abc import Callable
from types import ModuleType

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import largest_fragment, one_molecule, read_smiles
from graphormer_sepnorm.errors import not_installed


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


def chembl_parent(mol: Chem.Mol) -> Chem.Mol:
    """The parent that ChEMBL stores: normalized and neutral, without known salts, solvents and isotopes.

    Compounds of metals remain as they are, and a molecule remains whole if all its parts are known salts. Source: Bento
    et al., "An open source chemical structure curation pipeline using RDKit", J. Cheminform. 2020.

    Raises:
        InputError: the pipeline fails on the molecule, or as ``chembl_pipeline``.
    """
    standardizer = chembl_pipeline()
    with one_molecule():
        found, _ = standardizer.get_parent_mol(standardizer.standardize_mol(Chem.Mol(mol)))
        return read_smiles(Chem.MolToSmiles(found))


def chembl_pipeline() -> ModuleType:
    """ChEMBL's functions for standardization; raises InputError if they are not installed."""
    try:
        from chembl_structure_pipeline import standardizer  # an extra
    except ModuleNotFoundError:
        raise not_installed("--standardize chembl", "chembl_structure_pipeline", "standardize") from None
    return standardizer


PREPARATIONS: dict[str, Callable[[Chem.Mol], Chem.Mol]] = {
    "without-salts": largest_fragment,
    "standardized": parent,
    "tautomer": canonical_tautomer,
    "chembl": chembl_parent,
}
