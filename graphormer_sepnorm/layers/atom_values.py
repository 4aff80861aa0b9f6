"""What single atoms add to a prediction. Axis letters: B molecules, T atoms, D width."""

from torch import Tensor, nn

from graphormer_sepnorm.layers.gelu import gelu
from graphormer_sepnorm.layers.readouts import sum_atoms

TYPICAL_ATOMS = 20


class AtomValues(nn.Module):
    """Two values per atom and task, one whose mean over a molecule's atoms and one whose sum counts.

    For properties that atoms and their surroundings add up to, such as logP, or are averaged over. Sums are divided by
    ``TYPICAL_ATOMS``, so that both begin at one size.

    Source: Wildman and Crippen, "Prediction of physicochemical parameters by atomic contributions", JCICS 1999, for
    sums; Ertl and Schuffenhauer, "Estimation of synthetic accessibility score", J. Cheminform. 2009, for means.
    """

    def __init__(self, width: int, num_tasks: int):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 2 * num_tasks)

    def start_near_zero(self) -> None:
        """Draws values so small that a prediction is at first that of the head."""
        nn.init.normal_(self.out.weight, std=1e-3)

    def forward(self, atoms: Tensor, ptr: Tensor) -> Tensor:
        """From atoms [T, D] and ptr [B + 1] of a batch to [B, tasks]."""
        averaged, added = sum_atoms(self.out(gelu(self.hidden(atoms))), ptr).chunk(2, dim=1)
        return averaged / ptr.diff().clamp(min=1).unsqueeze(1) + added / TYPICAL_ATOMS
