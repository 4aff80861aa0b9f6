"""The answers that a user may ask for in addition to predictions, declared once for files, libraries and Python."""

from dataclasses import dataclass
from typing import Annotated

from graphormer_sepnorm.options import Option


@dataclass(frozen=True)
class Answers:
    """Columns to add to those of the predictions; by default none."""

    interval: Annotated[
        float | None,
        Option("Confidence, such as 0.9, of intervals in NAME_low and NAME_high, or of sets of classes in NAME_set."),
    ] = None
    domain: Annotated[bool, Option("Add columns that compare each row with the training molecules.")] = False
    alerts: Annotated[bool, Option("Name structural alerts (PAINS, Brenk) in a column.")] = False
    properties: Annotated[bool, Option("Add molecular weight, logP, TPSA and others in columns.")] = False

    @property
    def describe(self) -> bool:
        """Whether they need more of a molecule than its predictions."""
        return self.domain or self.alerts or self.properties


NO_ANSWERS = Answers()
