"""Options: fields of dataclasses that a user may set, each declared once, with its help text in its type.

The shell, scikit-learn and the page take names, types, defaults and help texts from these declarations; the dataclass
checks the values.
"""

import types
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Option:
    """In the metadata of a field's type: a user may set the field.

    Attributes:
        help: what it does, in a sentence.
        name: by which users know it, with hyphens; None: the name of the field.
        read: from the text of a command line to the value; None: the type says how.
        default: the default in words; "" if it is not shown, None if the field's own is.
    """

    help: str
    name: str | None = None
    read: Callable[[str], Any] | None = None
    default: str | None = None


@dataclass(frozen=True)
class Declared:
    """A field that a user may set.

    Attributes:
        field: its name.
        type: of its value, without None: a type, a ``Literal`` of texts, or ``list[str]``.
        default: its value if it is not set.
        option: as it was declared.
    """

    field: str
    type: Any
    default: Any
    option: Option

    @property
    def name(self) -> str:
        """The option's name on the command line."""
        return "--" + (self.option.name or self.field.replace("_", "-"))


def declared(cls: type, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> list[Declared]:
    """The fields of a dataclass that a user may set, in their order.

    Args:
        cls: the dataclass.
        only: names of fields; none: all of them.
        without: names of fields to leave out.
    """
    hints, found = get_type_hints(cls, include_extras=True), []
    for each in fields(cls):
        option = option_of(hints[each.name])
        if option is not None and each.name not in without and (not only or each.name in only):
            default = None if each.default is MISSING else each.default
            found.append(Declared(each.name, value_type(hints[each.name]), default, option))
    return found


def option_of(hint: Any) -> Option | None:
    """The option in the metadata of a type; None if there is none."""
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, Option)), None)


def value_type(hint: Any) -> Any:
    """A type without its metadata and without None; a tuple of texts as a list."""
    if get_origin(hint) is Annotated:
        return value_type(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        (known,) = (each for each in get_args(hint) if each is not types.NoneType)
        return value_type(known)
    if get_origin(hint) is tuple:
        return list[str]
    return hint
