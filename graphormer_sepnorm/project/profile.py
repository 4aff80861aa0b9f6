"""Profiles: what a good molecule is, as criteria on targets, properties and structural alerts.

A profile is a TOML file with a line per criterion, such as ``HLM = {at_most = 20, unit = "mL/min/kg"}``.

Axis letters: M molecules.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.chem.properties import PROPERTIES
from graphormer_sepnorm.config import STRICT, Scale, first_problem
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.output.column import PredictedColumn
from graphormer_sepnorm.predict.describing import UNKNOWN, measured_unit
from graphormer_sepnorm.predict.predictors import PredictingModel
from graphormer_sepnorm.predict.side_by_side import SideBySide, parts_of
from graphormer_sepnorm.project.judge import ALERTS, Goal, Hypervolume, Judge, Kind
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import falls, in_ascii, modelled, modelled_name, molar_scale

if TYPE_CHECKING:
    from pandas import DataFrame

    from graphormer_sepnorm.table_model.load import LoadedModel

IMPROVEMENT = "hypervolume_improvement"
LOGARITHM = "log10"  # the unit of a limit on the scale of a logarithm
OTHER_NAMES = {"logP": "MolLogP"}
KEYS = ("at_least", "at_most", "between", "class", "unit", "weight", "zero")  # of a criterion
# By how much a property may miss its limit until it is of no worth; a target by the deviation of its training labels.
RAMPS = {
    "MolWt": 100.0, "MolLogP": 1.0, "TPSA": 30.0, "NumHDonors": 2.0, "NumHAcceptors": 3.0, "NumRotatableBonds": 3.0,
    "NumAromaticRings": 2.0, "FractionCSP3": 0.2, "QED": 0.2, ALERTS: 2.0,
}  # fmt: skip
RAMP_OF_PROBABILITY = 0.5
Number = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class Criterion:
    at_least: Number | None = None
    at_most: Number | None = None
    class_name: str | None = None  # that a molecule shall have, in place of limits
    unit: str | None = None  # of limits as measured, behind a logarithm
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    zero: tuple[Number, ...] = ()  # where the desirability is 0, one for each limit; empty: as ``RAMPS``

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.at_least, self.at_most) if limit is not None]
        if self.class_name is not None and (limits or self.unit or self.zero):
            raise ValueError("a class has no limits, unit or zero")
        if self.class_name is None and not limits:
            raise ValueError("give at_least, at_most, between or class")
        if len(limits) == 2 and limits[0] > limits[1]:
            raise ValueError(f"at_least {limits[0]:g} and at_most {limits[1]:g} contradict each other")
        if self.zero and len(self.zero) != len(limits):
            raise ValueError(f"give zero as {'two numbers' if len(limits) == 2 else 'one number'}")


def criterion_of(line: object) -> Criterion:
    if not isinstance(line, Mapping):
        raise ValueError("give limits in braces, such as {at_least = 8}")
    fields: dict[str, Any] = {str(name): value for name, value in line.items()}
    if unknown := [name for name in fields if name not in KEYS]:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(KEYS)}{did_you_mean(unknown[0], KEYS)}")
    if "class" in fields:
        fields["class_name"] = fields.pop("class")
    if "between" in fields:
        ends = fields.pop("between")
        if not isinstance(ends, list | tuple) or len(ends) != 2 or fields.keys() & {"at_least", "at_most"}:
            raise ValueError("give between = [LOW, HIGH], without at_least and at_most")
        fields["at_least"], fields["at_most"] = ends
    zero = fields.get("zero", ())
    fields["zero"] = tuple(zero) if isinstance(zero, list | tuple) else (zero,)
    try:
        return Criterion(**fields)
    except ValidationError as error:
        raise ValueError(first_problem(error, KEYS)) from None


@dataclass(frozen=True, config=STRICT)
class Profile:
    """The criteria of a good molecule.

    Attributes:
        criteria: by the name of a target, a property of ``PROPERTIES``, or ``ALERTS``, the number of alerts.
        source: the file, for messages.
        with_hypervolume: whether molecules are also judged by their expected hypervolume improvement.
    """

    criteria: dict[str, Criterion] = field(default_factory=dict)
    source: str = "profile"
    with_hypervolume: bool = False

    @classmethod
    def read(cls, path: str | Path) -> "Profile":
        """Reads a TOML file; raises InputError if it cannot be read or as ``of``."""
        try:
            return cls.of(tomllib.loads(Path(path).read_text(encoding="utf-8")), str(path))
        except OSError as error:
            raise InputError(f"cannot read the profile {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a profile in TOML (write decimals as 10.0): {error}") from None

    @classmethod
    def of(cls, lines: Mapping[str, Any], source: str = "profile") -> "Profile":
        """The profile with these lines, such as ``{"pIC50": {"at_least": 8}}``.

        Raises:
            InputError: there are none, or one is not valid.
        """
        if not lines:
            raise InputError(f"{source} has no criteria: write one such as pIC50 = {{at_least = 8}}")
        criteria = {}
        for name, line in lines.items():
            try:
                criteria[name] = criterion_of(line)
            except ValueError as error:
                raise InputError(f"{source}: {name}: {error}") from None
        return cls(criteria, source)

    def judge(self, model: PredictingModel) -> Judge:
        """The judge of the predictions of a model.

        Raises:
            InputError: a criterion is on nothing that is known of molecules, has limits that no molecule can meet or a
                unit that the target does not have, or the model does not know how large its errors are.
        """
        goals = []
        for name, criterion in self.criteria.items():
            try:
                goals.append(goal_of(name, criterion, model))
            except ValueError as error:
                raise InputError(f"{self.source}: {name}: {error}") from None
        return Judge.of(tuple(goals))

    def columns_for(self, model: PredictingModel, is_whole: bool) -> list[PredictedColumn]:
        judge = self.judge(model)
        volumes = [Hypervolume.of(judge.goals)] if self.with_hypervolume else []
        return [*judge.columns(is_whole), *(PredictedColumn(IMPROVEMENT, cells=each.improvement) for each in volumes)]

    @property
    def reads(self) -> set[str]:
        names = {**dict.fromkeys([*PROPERTIES, *OTHER_NAMES], "properties"), ALERTS: ALERTS}
        return {names[name] for name in self.criteria if name in names}

    def score(self, model: "LoadedModel", molecules: Any, **options: Any) -> "DataFrame":
        """Judges M molecules, with the same numbers as ``predict --profile``.

        Args:
            model: as ``load_model`` returns it.
            molecules, options: as ``LoadedModel.predict``.

        Returns:
            a row per molecule, as ``LoadedModel.predict``, with ``desirability``, ``probability_of_success``,
            ``pareto_rank`` and ``weakest`` among its columns.

        Raises:
            InputError: as ``judge`` and ``LoadedModel.predict``.
        """
        return model.predict(molecules, profile=self, **options)


def goal_of(name: str, criterion: Criterion, model: PredictingModel) -> Goal:
    """The criterion on the scale of the predictions of a model; raises ValueError as ``Profile.judge``."""
    columns = [scale and modelled_name(name, scale) for scale in model.scales]  # if it is what a target is learnt from
    places = [place for place, target in enumerate(model.targets) if target in (name, *columns[place : place + 1])]
    if places:
        place = model.targets.index(name) if name in model.targets else places[0]
        part, number = model.places[place] if isinstance(model, SideBySide) else (0, place)
        owner = parts_of(model)[part]
        of_target = probability_goal if TASKS[owner.kind].predicts_probabilities else target_goal
        return of_target(name, criterion, place, owner, number)
    own_name = OTHER_NAMES.get(name, name)
    if own_name not in (*PROPERTIES, ALERTS):
        measured = [target[len("log10(") : -1] for target in model.targets if target.startswith("log10(")]
        near = did_you_mean(name, [*model.targets, *measured, *PROPERTIES, ALERTS])
        targets, properties = ", ".join(model.targets), ", ".join(PROPERTIES)
        raise ValueError(f"it is no target of the model ({targets}), no property ({properties}) and not {ALERTS}{near}")
    if criterion.unit is not None or criterion.class_name is not None:
        raise ValueError("a property has no unit and no class: give limits only")
    place = list(PROPERTIES).index(own_name) if own_name in PROPERTIES else 0
    return with_ramps(name, "alerts" if own_name == ALERTS else "property", place, criterion, RAMPS[own_name])


def probability_goal(name: str, criterion: Criterion, place: int, owner: PredictingModel, number: int) -> Goal:
    """A criterion on a probability, which is known, or on a class, which has this probability; as ``target_goal``."""
    if criterion.unit is not None:
        raise ValueError("a probability has no unit")
    if criterion.class_name is not None:
        choices = (f"not {name}", name) if TASKS[owner.kind].adds_up else owner.classes[number]
        if criterion.class_name not in choices:
            names = ", ".join(choices) + did_you_mean(criterion.class_name, choices)
            raise ValueError(f"class {criterion.class_name!r} is not one of {names}")
        is_one = choices.index(criterion.class_name) == 1
        ends = (1.0, math.inf, 0.0, math.inf) if is_one else (-math.inf, 0.0, -math.inf, 1.0)
        return Goal(name, "class", place, *ends, criterion.weight)
    for limit in (criterion.at_least, criterion.at_most):
        if limit is not None and not 0 <= limit <= 1:
            raise ValueError(f"{limit:g} is no probability: give a limit between 0 and 1, or a class")
    return with_ramps(name, "probability", place, criterion, RAMP_OF_PROBABILITY)


def target_goal(name: str, criterion: Criterion, place: int, owner: PredictingModel, number: int) -> Goal:
    """A criterion on a number; limits with a unit, or by the name of the column, are as measured."""
    if criterion.class_name is not None:
        raise ValueError("it is a number, which has no classes: give at_least, at_most or between")
    target, unit, rows = owner.targets[number], criterion.unit, owner.trust.rows if owner.trust else None
    scale: Scale = owner.scales[number] if owner.scales else ""
    known, is_column = measured_unit(scale, owner.descriptions.get(target, "")), modelled_name(name, scale) == target
    if unit is not None:
        scale = scale_of_limits(unit, scale, known)
    elif scale == "log10" and not is_column and not target.startswith("log10("):
        add = f'add unit = "{"UNIT" if known == UNKNOWN else known}" to limits as they are measured'
        other = f'or unit = "{LOGARITHM}" to limits on the scale of the predictions'
        raise ValueError(f"it is learnt as a logarithm: {add}, {other}")
    elif not is_column:
        scale = ""
    ramp = float(np.nanstd(rows.labels[:, number])) if rows is not None else math.nan
    goal = with_ramps(name, "target", place, criterion, ramp, scale)
    least, most = owner.limits[number] if owner.limits else (None, None)
    if (most is not None and goal.low > most) or (least is not None and goal.high < least):
        raise ValueError("no molecule can be inside these limits, which are outside those of the target")
    low = -math.inf if least is not None and goal.low <= least else goal.low  # all values meet such a limit
    high = math.inf if most is not None and goal.high >= most else goal.high
    return replace(goal, low=low, high=high, owner=(owner, number))


def scale_of_limits(unit: str, scale: Scale, own_unit: str) -> Scale:
    """The scale that brings limits in a unit to ``scale``; raises ValueError if the target has another unit."""
    if falls(scale):
        return molar_scale(unit)
    if scale == "log10" and unit.strip() == LOGARITHM:
        return ""
    if in_ascii(unit.strip()) == in_ascii(own_unit) or (scale == "log10" and own_unit == UNKNOWN):
        return scale
    what = "its unit is unknown" if own_unit == UNKNOWN else f"its unit is {own_unit}" if own_unit else "it has no unit"
    raise ValueError(f"{what}, not {unit}: give limits on the scale of its predictions, without unit")


def with_ramps(name: str, of: Kind, place: int, criterion: Criterion, ramp: float, scale: Scale = "") -> Goal:
    ends = criterion.at_least, criterion.at_most
    low, high = (None if end is None else modelled(end, scale, "a limit") for end in ends)
    zeros = [modelled(zero, scale, "a limit") for zero in criterion.zero]
    if falls(scale):
        low, high, zeros = high, low, zeros[::-1]
    if not (ramp > 0 or zeros):
        raise ValueError("the spread of its training labels is unknown: add zero, where the desirability is 0")
    low, zero_low = (-math.inf, -math.inf) if low is None else (low, zeros[0] if zeros else low - ramp)
    high, zero_high = (math.inf, math.inf) if high is None else (high, zeros[-1] if zeros else high + ramp)
    goal = Goal(name, of, place, low, high, zero_low, zero_high, criterion.weight)
    if goal.zero_low >= goal.low > -math.inf or goal.zero_high <= goal.high < math.inf:
        raise ValueError("zero is the value from which on a molecule is of no worth: choose it outside the limits")
    return goal
