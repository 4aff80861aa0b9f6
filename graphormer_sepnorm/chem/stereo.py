"""CIP labels of atoms and bonds (R, S, E and Z), independent of how a SMILES is written."""

from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from graphormer_sepnorm.chem.smiles import atoms_of, bonds_of
from graphormer_sepnorm.chem.standardize import parent_part

LABEL = "_CIPCode"
MAX_COMPARISONS = 100_000
MARKS = frozenset("@/\\|")  # in a SMILES; the last one begins an extension, which may describe stereo


def with_stereo_labels(mol: Chem.Mol, written: str) -> Chem.Mol:
    """A copy with the labels of ``label_stereo``; the molecule itself if its SMILES has no marks of stereo."""
    if written and MARKS.isdisjoint(written):
        return mol
    mol = Chem.Mol(mol)
    label_stereo(mol)
    return mol


def label_stereo(mol: Chem.Mol) -> None:
    """Labels also centres whose branches differ only in handedness. Source: Hanson et al., JCIM 2018."""
    remove_labels(mol)
    try:
        rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        remove_labels(mol)


def remove_labels(mol: Chem.Mol) -> None:
    for part in (*atoms_of(mol), *bonds_of(mol)):
        part.ClearProp(LABEL)


def label(part: Chem.Atom | Chem.Bond) -> str:
    """The CIP label of an atom or bond, "" if it has none."""
    return part.GetProp(LABEL) if part.HasProp(LABEL) else ""


def loses_stereo(given: Chem.Mol, read: Chem.Mol) -> bool:
    """Whether a prepared molecule has fewer centres and double bonds with stereo than the parent of the given one."""
    return read is not given and num_stereo(read) < num_stereo(parent_part(given))


def num_stereo(mol: Chem.Mol) -> int:
    """The number of centres and double bonds whose stereo is known."""
    unknown = (Chem.BondStereo.STEREONONE, Chem.BondStereo.STEREOANY)
    centres = sum(atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED for atom in atoms_of(mol))
    return centres + sum(bond.GetStereo() not in unknown for bond in bonds_of(mol))
