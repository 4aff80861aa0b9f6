"""Preparations of molecules before featurization, which the name of a featurizer ends in."""

from collections import Counter
from collections.abc import Callable
from types import ModuleType

from rdkit import Chem

from graphormer_sepnorm.chem.extensions import as_text
from graphormer_sepnorm.chem.salts import (
    is_doubtful,
    is_usual,
    parent_part,
    parent_without_metals,
    parts_of,
    without_bonds_of_metals,
    without_counter_ions,
)
from graphormer_sepnorm.chem.smiles import atoms_of, one_molecule, read_smiles
from graphormer_sepnorm.errors import InputError, not_installed


def parent(mol: Chem.Mol) -> Chem.Mol:
    """The neutral parent, normalized; charges that no hydrogen can balance remain. Source: MolVS by Matt Swain."""
    from rdkit.Chem.MolStandardize import rdMolStandardize  # its import takes a while

    part = parent_without_metals(mol)
    with one_molecule():
        normal = rdMolStandardize.Reionizer().reionize(rdMolStandardize.Normalizer().normalize(part))
        return rdMolStandardize.Uncharger().uncharge(normal)


def canonical_tautomer(mol: Chem.Mol) -> Chem.Mol:
    """The same for all tautomers of the ``parent``, not necessarily the most stable one; keeps stereo."""
    from rdkit.Chem.MolStandardize import rdMolStandardize

    neutral = parent(mol)
    with one_molecule():
        options = rdMolStandardize.CleanupParameters()
        for stereo in ("tautomerRemoveSp3Stereo", "tautomerRemoveBondStereo"):
            setattr(options, stereo, False)  # RDKit's stubs take properties for classes
        return rdMolStandardize.TautomerEnumerator(options).Canonicalize(neutral)


def chembl_parent(mol: Chem.Mol) -> Chem.Mol:
    """The parent that ChEMBL stores (Bento et al., J. Cheminform. 2020), without other counter-ions."""
    standardizer = chembl_pipeline()
    with one_molecule():
        found, excluded = standardizer.get_parent_mol(standardizer.standardize_mol(Chem.Mol(mol)))
        return read_smiles(as_text(found if excluded else without_counter_ions(found)))


def chembl_pipeline() -> ModuleType:
    """ChEMBL's functions for standardization; raises InputError if they are not installed."""
    try:
        from chembl_structure_pipeline import standardizer  # an extra
    except ModuleNotFoundError:
        raise not_installed("--standardize chembl", "chembl_structure_pipeline", "standardize") from None
    return standardizer


def reduction(given: Chem.Mol, read: Chem.Mol) -> str:
    """A sentence on the parts that a preparation removed; "" if it removed none, or only usual counter-ions."""
    if read.GetNumHeavyAtoms() >= given.GetNumHeavyAtoms():
        return ""
    kept, found, doubtful = composition(read), dict[str, None](), is_doubtful(given)
    try:
        with one_molecule():
            for part in parts_of(without_bonds_of_metals(given)):
                if kept != composition(part) != Counter() and composition(part) <= composition(given) - kept:
                    found[part_name(part)] = None
                    doubtful |= not is_usual(part)
    except InputError:  # RDKit fails on a part
        return ""
    if not (found and doubtful):
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
    "without-salts": parent_part,
    "standardized": parent,
    "tautomer": canonical_tautomer,
    "chembl": chembl_parent,
}
