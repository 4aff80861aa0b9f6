"""The predictions of one molecule as bars, each at its place among drugs or training values, or between 0 and 1."""

from dataclasses import dataclass
from typing import Literal

from graphormer_sepnorm.interfaces.web.schemas import EndpointFacts, ModelFacts, MoleculePrediction, TargetPrediction

OTHERS = "Other endpoints"  # those without a group


@dataclass(frozen=True)
class Bar:
    """The bar of a target, its ``place`` and the ``ends`` of its interval from 0 to 100, None where it is not known.

    The ``standing`` is the third that the place is in, from the better end, "" if no end is better; a percentile is
    ``among`` these values, a probability among none.
    """

    target: str
    place: float | None = None
    ends: tuple[float, float] | None = None
    standing: Literal["better", "middle", "worse", ""] = ""
    among: Literal["drugs", "training values", ""] = ""


def grouped_bars(facts: ModelFacts, answer: MoleculePrediction) -> dict[str, list[Bar]]:
    """The bars of a molecule by the group of their targets, in the order of the targets; "" if none has a group."""
    rest = OTHERS if any(known.group for known in facts.endpoints.values()) else ""
    found: dict[str, list[Bar]] = {}
    for target in filter(answer.predictions.__contains__, facts.targets):
        known = facts.endpoints.get(target, EndpointFacts())
        found.setdefault(known.group or rest, []).append(bar_of(facts, answer.predictions[target], target, known))
    return found


def bar_of(facts: ModelFacts, one: TargetPrediction, target: str, known: EndpointFacts) -> Bar:
    if facts.is_probability or target in facts.classes:
        return Bar(target, 100 * one.value, None, standing_of(100 * one.value, known.direction))
    if one.drugs is None:
        low, high = one.percentile_low, one.percentile_high
        ends = None if low is None or high is None or low == high else (low, high)
        return Bar(target, one.percentile, ends, among="" if one.percentile is None else "training values")
    ends = None if one.drugs_low is None or one.drugs_high is None else (one.drugs_low, one.drugs_high)
    direction = "" if one.limit else known.direction  # beyond a limit of the assay, drugs do not differ
    return Bar(target, one.drugs, ends, standing_of(one.drugs, direction), "drugs")


def standing_of(place: float, direction: str) -> Literal["better", "middle", "worse", ""]:
    good = place if direction == "higher" else 100 - place
    return "" if not direction else "worse" if good < 100 / 3 else "middle" if good < 200 / 3 else "better"
