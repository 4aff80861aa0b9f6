"""Selection of diverse molecules."""

from collections.abc import Sequence

from rdkit import Chem
from rdkit.SimDivFilters.rdSimDivPickers import LeaderPicker

from graphormer_sepnorm.chem.fingerprints import morgan_bits


def pick_diverse(mols: Sequence[Chem.Mol], count: int, distance: float) -> list[int]:
    """The numbers of molecules to pick, the preferred ones first.

    One after another, a molecule is picked if its Tanimoto distance to all that were picked before exceeds ``distance``
    (sphere exclusion). If fewer than ``count`` are left by that, the first of the others fill up.

    Args:
        mols: in the order of preference.
        count: how many to pick, at most all of them.
        distance: 0 to 1; 0 picks the first ones, be they alike or not.

    Raises:
        InputError: RDKit fails on a molecule.
    """
    bits = [morgan_bits(mol) for mol in mols]
    count = min(count, len(bits))
    if not distance or not count:
        return list(range(count))
    picked = list(LeaderPicker().LazyBitVectorPick(bits, len(bits), distance, count, numThreads=1))
    others = sorted(set(range(len(bits))) - set(picked))
    return [*picked, *others[: count - len(picked)]]
