"""Going on from the last completed epoch."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import STRICT


@dataclass(config=STRICT)
class Progress:
    """How far a run has come: what ``state.safetensors`` holds beside tensors."""

    epoch: Annotated[int, Field(ge=0)] = 0
    best_metric: float | None = None
    best_epoch: Annotated[int, Field(ge=0)] = 0
