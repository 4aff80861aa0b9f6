"""Contributions of single atoms to a prediction. Axis letters: B molecules, T atoms, D width."""

from torch import Tensor, nn

from graphormer_sepnorm.layers.gelu import gelu
from graphormer_sepnorm.layers.readouts import sum_atoms

TYPICAL_ATOMS = 20


class AtomValues(nn.Module):
    """Two values per atom and task, averaged (Ertl and Schuffenhauer, 2009) and summed (Wildman and Crippen, 1999)."""

    def __init__(self, width: int, num_tasks: int):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 2 * num_tasks)

    def forward(self, atoms: Tensor, ptr: Tensor) -> Tensor:
        """Maps atoms [T, D] and the ptr [B + 1] of a batch to [B, tasks]."""
        averaged, added = sum_atoms(self.out(gelu(self.hidden(atoms))), ptr).chunk(2, dim=1)
        return averaged / ptr.diff().clamp(min=1).unsqueeze(1) + added / TYPICAL_ATOMS
