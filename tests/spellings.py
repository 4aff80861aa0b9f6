"""Several SMILES of one molecule: in other orders, Kekule, with explicit hydrogens, with atom maps, in brackets."""

from rdkit import Chem


def spellings(smiles: str, orders: int = 2) -> dict[str, str]:
    """Spellings of a molecule by their names; those of other orders are drawn by a fixed seed."""
    mol = Chem.MolFromSmiles(smiles)
    kekule = Chem.Mol(mol)
    Chem.Kekulize(kekule)
    mapped, mapped_hydrogens = Chem.Mol(mol), Chem.AddHs(mol)
    for atom in (*mapped.GetAtoms(), *mapped_hydrogens.GetAtoms()):
        atom.SetAtomMapNum(atom.GetIdx() + 1)
    shuffled = Chem.MolToRandomSmilesVect(mol, orders, randomSeed=7)
    return {
        "canonical": Chem.MolToSmiles(mol),
        **{f"order {number}": text for number, text in enumerate(shuffled)},
        "kekule": Chem.MolToSmiles(kekule, kekuleSmiles=True),
        "hydrogens": Chem.MolToSmiles(Chem.AddHs(mol)),
        "maps": Chem.MolToSmiles(mapped),
        "maps of hydrogens": Chem.MolToSmiles(mapped_hydrogens),
        "brackets": Chem.MolToSmiles(mol, allHsExplicit=True),
        "bonds": Chem.MolToSmiles(mol, allBondsExplicit=True),
    }
