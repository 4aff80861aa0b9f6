"""Fragments of molecules: from BRICS, or else ring systems and the parts between them."""

from rdkit import Chem

from graphormer_sepnorm.chem.smiles import one_molecule


def fragments(mol: Chem.Mol) -> list[tuple[int, ...]]:
    """The atoms of each fragment, each in one. BRICS: Degen et al., ChemMedChem 2008; else rings and substituents."""
    from rdkit.Chem import BRICS  # its import takes a while

    with one_molecule():
        ends = [atoms for atoms, _ in BRICS.FindBRICSBonds(mol)]
        bonds = [mol.GetBondBetweenAtoms(*atoms).GetIdx() for atoms in ends] or bonds_of_rings(mol)
        if not bonds:
            return list(Chem.GetMolFrags(mol))
        return list(Chem.GetMolFrags(Chem.FragmentOnBonds(mol, bonds, addDummies=False)))


def bonds_of_rings(mol: Chem.Mol) -> list[int]:
    """The single bonds outside rings with at least one end in a ring."""
    return [
        bond.GetIdx()
        for bond in mol.GetBonds()
        if not bond.IsInRing()
        and bond.GetBondType() is Chem.BondType.SINGLE
        and (bond.GetBeginAtom().IsInRing() or bond.GetEndAtom().IsInRing())
    ]


def fragment_smiles(mol: Chem.Mol, atoms: tuple[int, ...]) -> str:
    """A fragment as SMILES; raises InputError if RDKit fails."""
    with one_molecule():
        return Chem.MolFragmentToSmiles(mol, atomsToUse=list(atoms))
