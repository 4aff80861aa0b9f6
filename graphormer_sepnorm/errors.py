from collections.abc import Collection


class InputError(ValueError):
    """The user's input cannot be used. The message is one sentence: what is wrong, where, and what to do.

    The commands print the message and exit with code 2.
    """


def known(kind: str, name: str, choices: Collection[str]) -> str:
    """The name of something of this kind; raises InputError if it is none of the choices."""
    if name not in choices:
        raise InputError(f"unknown {kind} {name!r}, choose one of {', '.join(choices)}")
    return name
