"""Training objectives. To add one for pretraining, write a file and add a line to ``OBJECTIVES``."""

from graphormer_sepnorm.errors import known
from graphormer_sepnorm.training.objectives.base import Pretraining
from graphormer_sepnorm.training.objectives.descriptors import Descriptors
from graphormer_sepnorm.training.objectives.fingerprints import Fingerprints
from graphormer_sepnorm.training.objectives.masked_atoms import MaskedAtoms

OBJECTIVES: dict[str, Pretraining] = {
    "descriptors": Descriptors(),
    "fingerprints": Fingerprints(),
    "masked-atoms": MaskedAtoms(),
}


def find_objective(name: str) -> Pretraining:
    return OBJECTIVES[known("objective", name, OBJECTIVES)]
