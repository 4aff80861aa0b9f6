"""The answers that a user may ask for in addition to predictions, declared once for files, libraries and Python."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated

from graphormer_sepnorm.options import Option


@dataclass(frozen=True)
class Answers:
    """Columns to add to those of the predictions, by default none, and the targets to write, by default all."""

    interval: Annotated[
        float | None,
        Option("Confidence, such as 0.9, of intervals in NAME_low and NAME_high, or of sets of classes in NAME_set."),
    ] = None
    domain: Annotated[bool, Option("Add columns that compare each row with the training molecules.")] = False
    alerts: Annotated[bool, Option("Name structural alerts (PAINS, Brenk) in a column.")] = False
    properties: Annotated[bool, Option("Add molecular weight, logP, TPSA and others in columns.")] = False
    endpoints: Annotated[
        tuple[str, ...], Option("Targets to write, by name or a pattern such as 'CYP3A4*'; by default all.")
    ] = ()

    @property
    def describe(self) -> bool:
        """Whether they need more of a molecule than its predictions."""
        return self.domain or self.alerts or self.properties

    def reading(self, names: Collection[str]) -> "Answers":
        """The same with "alerts" and "properties" that are named."""
        alerts, properties = self.alerts or "alerts" in names, self.properties or "properties" in names
        return replace(self, alerts=alerts, properties=properties)

    def of_part(self, is_first: bool, in_domain: bool) -> "Answers":
        """Those of one of several models side by side: molecules are described by the first one only."""
        return Answers(self.interval, self.domain and in_domain, self.alerts and is_first, self.properties and is_first)


NO_ANSWERS = Answers()
