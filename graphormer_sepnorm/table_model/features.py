"""What members read of molecules: each kind of features is computed once, when it is first asked for.

Axis letters: M molecules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from graphormer_sepnorm.system.workers import Smiles

Rows = TypeVar("Rows")


@dataclass
class MoleculeFeatures:
    """Molecules with what was computed of them.

    Attributes:
        smiles: M of them, all readable.
        computed: by the function that computes them from SMILES, arrays or sparse arrays with a row per molecule.
    """

    smiles: Sequence[str]
    computed: dict[Callable[[Smiles], Any], Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.smiles)

    def of(self, view: Callable[[Smiles], Rows]) -> Rows:
        """What a function computes of the SMILES, from the second time on without computing."""
        if view not in self.computed:
            self.computed[view] = view(self.smiles)
        return self.computed[view]

    def take(self, rows: np.ndarray) -> "MoleculeFeatures":
        """The molecules with these numbers, and what is known of them."""
        computed = {view: values[rows] for view, values in self.computed.items()}
        return MoleculeFeatures([self.smiles[row] for row in rows.tolist()], computed)
