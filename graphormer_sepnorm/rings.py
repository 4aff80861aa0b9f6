"""Rings of molecular graphs, found by RDKit."""

import numpy as np
from rdkit import Chem


def smallest_rings(num_atoms: int, edge_index: np.ndarray) -> list[list[int]]:
    """The atoms of each ring of the symmetrized smallest set of smallest rings.

    Where several smallest sets exist it is their union, so the result does not depend on how the atoms are numbered.

    Args:
        num_atoms: of the molecule.
        edge_index: [2, E], source and target of each directed bond.
    """
    skeleton = Chem.RWMol()
    for _ in range(num_atoms):
        skeleton.AddAtom(Chem.Atom("C"))
    for low, high in {(min(bond), max(bond)) for bond in edge_index.T.tolist()}:
        if low < high:
            skeleton.AddBond(low, high, Chem.BondType.SINGLE)
    return [list(ring) for ring in Chem.GetSymmSSSR(skeleton)]
