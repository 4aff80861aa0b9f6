"""Facts on a substance beyond its atoms and bonds, from the extension of a SMILES or from a molfile."""

from collections.abc import Iterable
from itertools import chain, product

from rdkit import Chem

from graphormer_sepnorm.errors import InputError

POLYMERS = frozenset(["SRU", "MON", "MER", "COP", "CRO", "MOD", "GRA", "ANY"])  # types of groups of a molfile
MAX_GROUPS = 6  # of centres whose 2 to the power of this many mirror images are compared
RELATIVE = (Chem.StereoGroupType.STEREO_AND, Chem.StereoGroupType.STEREO_OR)


def refuse_incomplete(mol: Chem.Mol) -> None:
    """Raises InputError for a polymer, attachment points, labelled R groups, and variable parts."""
    if any(group.GetProp("TYPE") in POLYMERS for group in Chem.GetMolSubstanceGroups(mol)):
        raise InputError("The structure is a polymer: give one molecule, such as its monomer.")
    for atom in mol.GetAtoms():
        wildcard = atom.GetAtomicNum() == 0
        named = atom.HasProp("atomLabel") and atom.GetProp("atomLabel") not in ("", "star_e")
        if atom.HasProp("molAttchpt") or (wildcard and (named or atom.HasProp("_MolFileRLabel"))):
            raise InputError("The structure has an R group, an attachment point or a generic atom: give one molecule.")
    if mol.HasProp("_molLinkNodes") or any(bond.HasProp("_MolFileBondEndPts") for bond in mol.GetBonds()):
        raise InputError("The structure has a variable part: give one molecule.")


def with_settled_stereo(mol: Chem.Mol) -> Chem.Mol:
    """The molecule of a racemate or of relative stereo, the same for both of its mirror images."""
    if not mol.GetStereoGroups():
        return mol
    settled = Chem.RWMol(mol)
    groups = [group for group in mol.GetStereoGroups() if group.GetGroupType() in RELATIVE]
    for group in groups:
        if len(group.GetAtoms()) == 1:
            settled.GetAtomWithIdx(group.GetAtoms()[0].GetIdx()).SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    centres = [[atom.GetIdx() for atom in group.GetAtoms()] for group in groups]
    settled.SetStereoGroups([])
    several = [places for places in centres if len(places) > 1][:MAX_GROUPS]
    turned = product(*([[], places] for places in several))
    best = Chem.RWMol(min((mirrored(settled, each) for each in turned), key=Chem.MolToSmiles))
    smiles, kept = Chem.MolToSmiles(best), []
    for group, places in zip(groups, centres, strict=True):
        if len(places) > 1 and Chem.MolToSmiles(mirrored(best, [places])) != smiles:
            kept.append(Chem.CreateStereoGroup(group.GetGroupType(), best, places))
    best.SetStereoGroups(kept)
    return best.GetMol()


def mirrored(mol: Chem.Mol, groups: Iterable[list[int]]) -> Chem.Mol:
    """A copy in which the centres of these groups are inverted, and labels of stereo are assigned again."""
    found = Chem.Mol(mol)
    for place in chain(*groups):
        found.GetAtomWithIdx(place).InvertChirality()
    Chem.AssignStereochemistry(found, cleanIt=True, force=True)
    return found


def as_text(mol: Chem.Mol) -> str:
    """The canonical SMILES, with an extension for racemic or relative stereo if there is any."""
    if not mol.GetStereoGroups():
        return Chem.MolToSmiles(mol)
    return Chem.MolToCXSmiles(mol, Chem.SmilesWriteParams(), Chem.CXSmilesFields.CX_ENHANCEDSTEREO)
