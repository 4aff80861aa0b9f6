"""The predictions of one molecule as bars, each at its place among approved drugs or between probabilities 0 and 1."""

from dataclasses import dataclass
from typing import Literal

from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, MoleculePrediction

OTHERS = "Other endpoints"  # those without a group
THIRDS = 100 / 3, 200 / 3


@dataclass(frozen=True)
class Bar:
    """The bar of a target.

    Attributes:
        target: its name.
        place: 0 to 100; None where it is not known.
        ends: of the interval, on the same scale; None where they are not known.
        standing: the third that the place is in, from the better end; "" if no end is better.
    """

    target: str
    place: float | None = None
    ends: tuple[float, float] | None = None
    standing: Literal["better", "middle", "worse", ""] = ""


def grouped_bars(facts: ModelFacts, answer: MoleculePrediction) -> dict[str, list[Bar]]:
    """The bars of a molecule by the group of their targets, in the order of the targets; empty without groups."""
    if answer.error or not any(known.group for known in facts.endpoints.values()):
        return {}
    found: dict[str, list[Bar]] = {}
    for target in filter(answer.predictions.__contains__, facts.targets):
        known = facts.endpoints.get(target, EndpointFacts())
        found.setdefault(known.group or OTHERS, []).append(bar_of(facts, answer, target, known.direction))
    return found


def bar_of(facts: ModelFacts, answer: MoleculePrediction, target: str, direction: str) -> Bar:
    one = answer.predictions[target]
    place = 100 * one.value if facts.is_probability or target in facts.classes else one.drugs
    if place is None:
        return Bar(target)
    ends = None if one.drugs_low is None or one.drugs_high is None else (one.drugs_low, one.drugs_high)
    if not direction:
        return Bar(target, place, ends)
    good = place if direction == "higher" else 100 - place
    return Bar(target, place, ends, "worse" if good < THIRDS[0] else "middle" if good < THIRDS[1] else "better")
