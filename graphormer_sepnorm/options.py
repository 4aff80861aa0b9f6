"""Options: dataclass fields that a user may set, declared once for commands, estimators and the page."""

import types
from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, fields, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

# Ways to rank the molecules of a library; ``Acquisition`` and ``Hypervolume`` have their formulas.
Promise = Literal["expected-improvement", "confidence-bound", "prediction", "hypervolume"]


@dataclass(frozen=True)
class Option:
    """Metadata in the type of a field: a user may set the field."""

    help: str
    name: str | None = None  # for users, with hyphens; None: the name of the field
    read: Callable[[str], Any] | None = None  # parses the text of a command line; None: the type does
    default: str | None = None  # its description; "" to hide it, None to show the field's own


@dataclass(frozen=True)
class Declared:
    """A field that a user may set."""

    field: str
    type: Any  # of its value, without None: a type, a Literal of texts, or list[str]
    default: Any
    option: Option

    @property
    def name(self) -> str:
        return "--" + (self.option.name or self.field.replace("_", "-"))


def declared(cls: type, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> list[Declared]:
    """The fields of a dataclass that a user may set, in order; ``only`` or ``without`` some names."""
    hints = get_type_hints(cls, include_extras=True)
    return [
        Declared(each.name, value_type(hints[each.name]), None if each.default is MISSING else each.default, option)
        for each in fields(cls)
        for option in getattr(hints[each.name], "__metadata__", ())
        if isinstance(option, Option) and each.name not in without and (not only or each.name in only)
    ]


def changed(options: Any) -> list[str]:
    """The names on the command line of the options of a dataclass that do not have their default values."""
    return [each.name for each in declared(type(options)) if getattr(options, each.field) != each.default]


def value_type(hint: Any) -> Any:
    """A type without its metadata and without None; a tuple of texts becomes a list."""
    if get_origin(hint) is Annotated:
        return value_type(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        (kind,) = (each for each in get_args(hint) if each is not types.NoneType)
        return value_type(kind)
    if get_origin(hint) is tuple:
        return list[str]
    return hint


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read, declared once for commands and for Python."""

    smiles_column: Annotated[str | None, Option("SMILES column of the input; by default recognized by its name.")] = (
        None
    )
    delimiter: Annotated[str | None, Option("Delimiter of the input; by default detected from its header.")] = None
    sheet: Annotated[str | None, Option("Sheet of an Excel input; by default the first that has molecules.")] = None
    strict: Annotated[bool, Option("Stop at the first row that cannot be read.")] = False
    resume: Annotated[bool, Option("Continue an interrupted run of the same command.")] = False


AS_FOUND = ReadOptions()


@dataclass(frozen=True)
class Answers:
    """Columns that a user may ask for in addition to predictions, by default none, and the targets to write."""

    interval: Annotated[
        float | None,
        Option("Confidence, such as 0.9, of intervals in NAME_low and NAME_high, or of sets of classes in NAME_set."),
    ] = None
    domain: Annotated[bool, Option("Add columns that compare each row with the training molecules.")] = False
    alerts: Annotated[bool, Option("Name structural alerts (PAINS, Brenk) in a column.")] = False
    properties: Annotated[bool, Option("Add molecular weight, logP, TPSA and others in columns.")] = False
    endpoints: Annotated[
        tuple[str, ...], Option("Targets to write, by name, group or a pattern such as 'CYP3A4*'; by default all.")
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
