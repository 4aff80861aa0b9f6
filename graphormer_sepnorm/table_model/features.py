"""What members read of molecules: each kind of features is computed once, when it is first asked for.

Axis letters: M molecules.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from graphormer_sepnorm.chem.smiles import Molecule

Rows = TypeVar("Rows")


@dataclass
class MoleculeFeatures:
    """Molecules with what was computed of them.

    Attributes:
        molecules: M of them, read or as SMILES, all readable.
        computed: by the function that computes them, arrays or sparse arrays with a row per molecule.
    """

    molecules: Sequence[Molecule]
    computed: dict[Callable[["MoleculeFeatures"], Any], Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.molecules)

    def of(self, view: Callable[["MoleculeFeatures"], Rows]) -> Rows:
        """What a function computes of the molecules, from the second time on without computing."""
        if view not in self.computed:
            self.computed[view] = view(self)
        return self.computed[view]

    def take(self, rows: np.ndarray) -> "MoleculeFeatures":
        """The molecules with these numbers, and what is known of them."""
        computed = {view: values[rows] for view, values in self.computed.items()}
        return MoleculeFeatures([self.molecules[row] for row in rows.tolist()], computed)
