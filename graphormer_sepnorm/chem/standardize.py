"""Preparation of molecules before featurization: largest fragment, neutral parent, canonical tautomer, ChEMBL's parent.

A preparation is a function from molecule to molecule, named in ``PREPARATIONS``. The name of a model's featurizer ends
in that of its preparation, so predictions prepare molecules as training did.
"""

from collections import Counter
from collections.abc import Callable
from types import ModuleType

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import atoms_of, largest_fragment, one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError, not_installed

# Counter-ions, acids, bases and solvents that are expected next to a molecule, neutral and without stereo.
USUAL_PARTS = {
    "Li", "Na", "K", "Mg", "Ca", "F", "Cl", "Br", "I", "N", "O", "O=[N+]([O-])O", "O=S(=O)(O)O", "O=P(O)(O)O",
    "F[B-](F)(F)F", "F[PH](F)(F)(F)(F)F", "[O-][Cl+3]([O-])([O-])O", "O=C(O)O", "O=CO", "CC(=O)O", "O=C(O)C(F)(F)F",
    "CC(O)C(=O)O", "O=C(O)C(=O)O", "O=C(O)CC(=O)O", "O=C(O)C=CC(=O)O", "O=C(O)CCC(=O)O", "O=C(O)CC(O)C(=O)O",
    "O=C(O)C(O)C(O)C(=O)O", "O=C(O)CC(O)(CC(=O)O)C(=O)O", "O=C(O)c1ccccc1", "CS(=O)(=O)O", "O=S(=O)(O)C(F)(F)F",
    "O=S(=O)(O)c1ccccc1", "Cc1ccc(S(=O)(=O)O)cc1", "CCN(CC)CC", "NC(CO)(CO)CO", "CNCC(O)C(O)C(O)C(O)CO", "NCCO",
    "OCCNCCO", "C1CCC(NC2CCCCC2)CC1", "CO", "CCO", "CC(C)O", "CC(C)=O", "CC#N", "CCOC(C)=O", "CCOCC", "C1CCOC1",
    "C1COCCO1", "ClCCl", "ClC(Cl)Cl", "CN(C)C=O", "CS(C)=O", "c1ccccc1", "Cc1ccccc1", "c1ccncc1",
}  # fmt: skip


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


def reduction(given: Chem.Mol, read: Chem.Mol) -> str:
    """A sentence on the parts, other than ``USUAL_PARTS``, that a preparation removed; "" if there are none.

    Args:
        given: the molecule.
        read: the prepared molecule.
    """
    if read.GetNumHeavyAtoms() >= given.GetNumHeavyAtoms():
        return ""
    from rdkit.Chem.MolStandardize import rdMolStandardize  # its import takes a while

    kept, found = composition(read), dict[str, None]()
    try:
        with one_molecule():
            apart = rdMolStandardize.MetalDisconnector().Disconnect(Chem.Mol(given))
            for part in Chem.GetMolFrags(apart, asMols=True, sanitizeFrags=False):
                if kept != composition(part) != Counter() and composition(part) <= composition(given) - kept:
                    found[part_name(part)] = None
    except InputError:  # RDKit fails on a part
        return ""
    if found.keys() <= USUAL_PARTS:
        return ""
    removed = " and ".join(filter(None, [", ".join([*found][:-1]), [*found][-1]]))
    return f"Read as {Chem.MolToSmiles(read)}: standardization removed {removed}."


def composition(mol: Chem.Mol) -> Counter[int]:
    """The number of atoms of each element except hydrogen."""
    return Counter(atom.GetAtomicNum() for atom in atoms_of(mol) if atom.GetAtomicNum() > 1)


def part_name(part: Chem.Mol) -> str:
    """The symbol of an atom or ion; of a larger part its SMILES, neutral and without stereo."""
    from rdkit.Chem.MolStandardize import rdMolStandardize

    if part.GetNumAtoms() == 1:
        return part.GetAtomWithIdx(0).GetSymbol()
    part.UpdatePropertyCache(strict=False)
    return Chem.MolToSmiles(rdMolStandardize.Uncharger().uncharge(part), isomericSmiles=False)


PREPARATIONS: dict[str, Callable[[Chem.Mol], Chem.Mol]] = {
    "without-salts": largest_fragment,
    "standardized": parent,
    "tautomer": canonical_tautomer,
    "chembl": chembl_parent,
}
