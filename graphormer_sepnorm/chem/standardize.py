"""The parent of a salt or a mixture, the preparations that a featurizer's name ends in, and CIP labels of stereo."""

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Callable
from importlib import resources
from types import ModuleType
from typing import Any

from rdkit import Chem
from rdkit.Chem import rdCIPLabeler
from rdkit.Chem.MolStandardize import rdMolStandardize

from graphormer_sepnorm.chem.smiles import atoms_of, bonds_of, one_molecule, read_smiles, smiles_of
from graphormer_sepnorm.errors import InputError, not_installed

# Parts in ``salts.json``, from RDKit and ChEMBL, are removed as long as another kind of part is left, in the order of
# kinds. They are compared without stereo, isotopes and charge. Single atoms, such as water and ions of metals, are of
# the first kind, but only ``USUAL_ATOMS`` are removed without a word.
NUM_KINDS = 4
USUAL_ATOMS = frozenset([1, 3, 4, 7, 8, 9, 11, 12, 13, 16, 17, 19, 20, 30, 35, 37, 38, 47, 53, 55, 56, 83, 87, 88])
NONMETALS = frozenset([*range(3), *range(5, 11), *range(14, 19), *range(32, 37), *range(51, 55), 85, 86])
COMPLEX = NUM_KINDS - 0.5  # kind of an inorganic part with an unusual metal
DOUBTED = 2  # from this kind on, several different parts of the same kind could be the parent
STEREO_LABEL = "_CIPCode"
MAX_COMPARISONS = 100_000
STEREO_MARKS = frozenset("@/\\|")  # in a SMILES; the last one begins an extension, which may describe stereo


def parent_part(mol: Chem.Mol) -> Chem.Mol:
    """The parent with its charge: sodium acetate becomes acetate; an inorganic salt only loses its water."""
    parts = unbonded_parts(mol)
    if len(parts) == 1:
        return mol
    if all(kind <= 0 or kind == COMPLEX for kind in map(kind_of_part, parts)):
        parts = [part for part in parts if Chem.MolToSmiles(part) != "O"] or parts[:1]
        return functools.reduce(Chem.CombineMols, parts)
    return max(parts, key=order_of_part)


def is_doubtful(mol: Chem.Mol) -> bool:
    """Whether several different parts could be the parent: none is a usual counter-ion, or all of them are."""
    parts = unbonded_parts(mol)
    if len(parts) == 1:
        return False
    kinds = list(map(kind_of_part, parts))
    best = [part for part, kind in zip(parts, kinds, strict=True) if kind == max(kinds)]
    return max(kinds) >= DOUBTED and len(set(map(constitution, best))) > 1


def without_counter_ions(mol: Chem.Mol) -> Chem.Mol:
    """A molecule without its usual counter-ions and solvents; itself if it has nothing else, or none of them."""
    parts = unbonded_parts(mol)
    kept = [part for part in parts if kind_of_part(part) > NUM_KINDS - 1]
    return functools.reduce(Chem.CombineMols, kept) if 0 < len(kept) < len(parts) else mol


def is_usual(part: Chem.Mol) -> bool:
    """Whether a part is a usual counter-ion or solvent."""
    return kind_of_part(part) in range(NUM_KINDS)


def unbonded_parts(mol: Chem.Mol) -> list[Chem.Mol]:
    """The parts that are not bonded to each other; a single one is the molecule itself."""
    with one_molecule():
        if len(Chem.GetMolFrags(mol)) == 1:
            return [mol]
        return list(Chem.GetMolFrags(mol, asMols=True, sanitizeFrags=False))


def order_of_part(part: Chem.Mol) -> tuple[float, int, float, str]:
    """The order of parts by their kind, then heavy atoms, weight and SMILES, whatever the order of writing."""
    with one_molecule():
        weight = sum(atom.GetMass() for atom in part.GetAtoms())
        return kind_of_part(part), part.GetNumHeavyAtoms(), weight, Chem.MolToSmiles(part)


def kind_of_part(part: Chem.Mol) -> float:
    """The place of its kind, ``NUM_KINDS`` if organic, 0 for a salt drawn with bonds, -1 for an unusual single atom."""
    elements, heavy = {atom.GetAtomicNum() for atom in part.GetAtoms()}, part.GetNumHeavyAtoms()
    organic = bool(elements & {0, 6})  # a wildcard is taken for a carbon
    if heavy <= 1 and not organic:
        return 0 if elements <= USUAL_ATOMS else -1
    metals = elements - NONMETALS
    other = NUM_KINDS if organic else COMPLEX if metals - USUAL_ATOMS else 0 if metals else DOUBTED - 0.5
    usual = usual_parts(heavy)
    return usual.get(constitution(part), other) if usual else other


@functools.cache
def usual_parts(heavy: int) -> dict[str, int]:
    """The kinds of the parts with this number of heavy atoms, by their ``constitution``."""
    return {constitution_of(text): kind for text, kind, size in listed_parts() if size == heavy}


@functools.cache
def listed_parts() -> list[tuple[str, int, int]]:
    """The SMILES of the parts in ``salts.json``, their kinds, and their numbers of heavy atoms."""
    kinds = json.loads((resources.files("graphormer_sepnorm.resources") / "salts.json").read_text())
    texts = [(text, kind) for kind, parts in enumerate(kinds.values()) for text in parts]
    return [(text, kind, Chem.MolFromSmiles(text, sanitize=False).GetNumHeavyAtoms()) for text, kind in texts]


def constitution(part: Chem.Mol) -> str:
    """The same text for any drawing of a part, its stereo, isotopes and charge; raises InputError if RDKit fails."""
    with one_molecule():
        return constitution_of(Chem.MolToSmiles(part))


@functools.lru_cache(10_000)
def constitution_of(smiles: str) -> str:
    """As ``constitution``: the first block of the InChIKey; a SMILES if there is none, as for a wildcard atom."""
    with one_molecule(smiles):
        mol = Chem.MolFromSmiles(smiles, sanitize=False)
        mol.UpdatePropertyCache(strict=False)
        Chem.SanitizeMol(mol, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
        flat = uncharged(mol)
        return Chem.MolToInchiKey(flat)[:14] or Chem.MolToSmiles(flat, isomericSmiles=False)


def parent_without_metals(mol: Chem.Mol) -> Chem.Mol:
    """``parent_part`` after metals with bonds are disconnected, unless nothing organic is left, as of cisplatin."""
    if not any(atom.GetAtomicNum() not in NONMETALS and atom.GetDegree() for atom in mol.GetAtoms()):
        return parent_part(mol)
    part = parent_part(without_bonds_of_metals(mol))
    return part if len(unbonded_parts(part)) == 1 and kind_of_part(part) >= DOUBTED else parent_part(mol)


def without_bonds_of_metals(mol: Chem.Mol) -> Chem.Mol:
    """A copy in which metals are ions, but not those of most metal alkyls; raises InputError if RDKit fails."""
    with one_molecule():
        return metal_disconnector().Disconnect(Chem.Mol(mol))


@functools.cache
def metal_disconnector() -> Any:
    """RDKit's, which also takes sulfides and halides of alkali and alkaline earth metals for salts."""
    disconnector = rdMolStandardize.MetalDisconnector()
    metals, _ = disconnector.MetalNof.split("~")
    heavier = "$([S,s,Se,Cl,Br,I]~[Li,Na,K,Rb,Cs,Mg,Ca,Sr,Ba;!$(*~[#6])])"
    disconnector.SetMetalNof(Chem.MolFromSmarts(f"{metals}~[#7,#8,F,{heavier}]"))
    return disconnector


def neutral_parent(mol: Chem.Mol) -> Chem.Mol:
    """``parent_without_metals``, ``uncharged``; raises InputError as it. A neutral molecule of one part is itself."""
    part = parent_without_metals(mol)
    with one_molecule():
        return uncharged(part)


def uncharged(mol: Chem.Mol) -> Chem.Mol:
    """A molecule without the charges that hydrogens can balance; itself if it has none."""
    charges = [atom.GetFormalCharge() for atom in atoms_of(mol)]
    neutral = rdMolStandardize.Uncharger().uncharge(mol) if any(charges) else mol
    return mol if charges == [atom.GetFormalCharge() for atom in atoms_of(neutral)] else neutral


def parent(mol: Chem.Mol) -> Chem.Mol:
    """The neutral parent, normalized; charges that no hydrogen can balance remain. Source: MolVS by Matt Swain."""
    part = parent_without_metals(mol)
    with one_molecule():
        normal = rdMolStandardize.Reionizer().reionize(rdMolStandardize.Normalizer().normalize(part))
        return rdMolStandardize.Uncharger().uncharge(normal)


def canonical_tautomer(mol: Chem.Mol) -> Chem.Mol:
    """The same for all tautomers of the ``parent``, not necessarily the most stable one; keeps stereo."""
    neutral = parent(mol)
    with one_molecule():
        enumerator = rdMolStandardize.TautomerEnumerator()
        enumerator.SetRemoveSp3Stereo(False)
        enumerator.SetRemoveBondStereo(False)
        return enumerator.Canonicalize(neutral)


def chembl_parent(mol: Chem.Mol) -> Chem.Mol:
    """The parent that ChEMBL stores (Bento et al., J. Cheminform. 2020), without other counter-ions."""
    standardizer = chembl_pipeline()
    with one_molecule():
        parent, excluded = standardizer.get_parent_mol(standardizer.standardize_mol(Chem.Mol(mol)))
        return read_smiles(smiles_of(parent if excluded else without_counter_ions(parent)))


def chembl_pipeline() -> ModuleType:
    """ChEMBL's functions for standardization; raises InputError if they are not installed."""
    try:
        from chembl_structure_pipeline import standardizer  # an extra
    except ModuleNotFoundError:
        raise not_installed("--standardize chembl", "chembl_structure_pipeline", "standardize") from None
    return standardizer


def reduction(original: Chem.Mol, read: Chem.Mol) -> str:
    """A sentence on the parts that a preparation removed; "" if it removed none, or only usual counter-ions."""
    if read.GetNumHeavyAtoms() >= original.GetNumHeavyAtoms():
        return ""
    kept, steps, doubtful = composition(read), dict[str, None](), is_doubtful(original)
    with contextlib.suppress(InputError), one_molecule():  # RDKit can fail on a part
        for part in unbonded_parts(without_bonds_of_metals(original)):
            if kept != composition(part) != Counter() and composition(part) <= composition(original) - kept:
                steps[part_name(part)] = None
                doubtful |= not is_usual(part)
        if steps and doubtful:
            removed = " and ".join(filter(None, [", ".join([*steps][:-1]), [*steps][-1]]))
            return f"Read as {Chem.MolToSmiles(read)}: standardization removed {removed}."
    return ""


def composition(mol: Chem.Mol) -> Counter[int]:
    """The number of atoms of each element except hydrogen."""
    return Counter(atom.GetAtomicNum() for atom in atoms_of(mol) if atom.GetAtomicNum() > 1)


def part_name(part: Chem.Mol) -> str:
    """The symbol of an atom or ion; of a larger part its SMILES, neutral and without stereo."""
    if part.GetNumAtoms() == 1:
        return part.GetAtomWithIdx(0).GetSymbol()
    part.UpdatePropertyCache(strict=False)
    return Chem.MolToSmiles(rdMolStandardize.Uncharger().uncharge(part), isomericSmiles=False)


def with_stereo_labels(mol: Chem.Mol, written: str = "") -> Chem.Mol:
    """A copy with CIP labels; the molecule itself if the SMILES it was written as has no marks of stereo.

    Centres whose branches differ only in handedness have labels too. Source: Hanson et al., JCIM 2018.
    """
    if written and STEREO_MARKS.isdisjoint(written):
        return mol
    mol = Chem.Mol(mol)
    parts: list[Chem.Atom | Chem.Bond] = [*atoms_of(mol), *bonds_of(mol)]
    for part in parts:
        part.ClearProp(STEREO_LABEL)
    try:
        rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        for part in parts:
            part.ClearProp(STEREO_LABEL)
    return mol


def label(part: Chem.Atom | Chem.Bond) -> str:
    """The CIP label of an atom or bond, "" if it has none."""
    return part.GetProp(STEREO_LABEL) if part.HasProp(STEREO_LABEL) else ""


def loses_stereo(original: Chem.Mol, read: Chem.Mol) -> bool:
    """Whether a prepared molecule has fewer centres and double bonds with stereo than the parent of the given one."""
    return read is not original and num_stereo(read) < num_stereo(parent_part(original))


def num_stereo(mol: Chem.Mol) -> int:
    """The number of centres and double bonds whose stereo is known."""
    unknown = (Chem.BondStereo.STEREONONE, Chem.BondStereo.STEREOANY)
    centres = sum(atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED for atom in atoms_of(mol))
    return centres + sum(bond.GetStereo() not in unknown for bond in bonds_of(mol))


PREPARATIONS: dict[str, Callable[[Chem.Mol], Chem.Mol]] = {
    "without-salts": parent_part,
    "standardized": parent,
    "tautomer": canonical_tautomer,
    "chembl": chembl_parent,
}
