"""CIP labels of atoms and bonds: what R, S, E and Z say of a molecule, however its SMILES is written."""

from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

from graphormer_sepnorm.chem.smiles import read_smiles

LABEL = "_CIPCode"
MAX_COMPARISONS = 100_000


def label_stereo(mol: Chem.Mol) -> None:
    """Gives each atom and each bond its CIP label as the property ``LABEL``; "" for none.

    The labels are found on the canonical SMILES: the rules are settled by comparing branches, and in a few symmetric
    molecules, such as inositols, RDKit's answer depends on the order in which they come. Lower-case letters mark
    centres that differ by branches of opposite handedness alone, such as cis and trans in rings. A molecule that needs
    more than ``MAX_COMPARISONS`` gets no labels.

    Source: Hanson et al., "Algorithmic Analysis of Cahn-Ingold-Prelog Rules of Stereochemistry", JCIM 2018.
    """
    for part in parts(mol):
        part.SetProp(LABEL, "")
    if not has_stereo(mol):
        return
    canonical = read_smiles(Chem.MolToSmiles(mol))
    place = list(mol.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"])
    for part in parts(canonical):
        part.ClearProp(LABEL)
    try:
        rdCIPLabeler.AssignCIPLabels(canonical, maxRecursiveIterations=MAX_COMPARISONS)
    except RuntimeError:
        return
    for atom in canonical.GetAtoms():
        mol.GetAtomWithIdx(place[atom.GetIdx()]).SetProp(LABEL, label(atom))
    for bond in canonical.GetBonds():
        ends = place[bond.GetBeginAtomIdx()], place[bond.GetEndAtomIdx()]
        mol.GetBondBetweenAtoms(*ends).SetProp(LABEL, label(bond))


def parts(mol: Chem.Mol) -> list[Chem.Atom | Chem.Bond]:
    return [*mol.GetAtoms(), *mol.GetBonds()]


def has_stereo(mol: Chem.Mol) -> bool:
    """Whether a SMILES said anything of the stereochemistry."""
    return any(atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED for atom in mol.GetAtoms()) or any(
        bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in mol.GetBonds()
    )


def label(part: Chem.Atom | Chem.Bond) -> str:
    """The CIP label of an atom or a bond, "" where it has none."""
    return part.GetProp(LABEL) if part.HasProp(LABEL) else ""
