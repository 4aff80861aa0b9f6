"""Options of a training that is continued: those of the call that began it, which its run folder keeps."""

import json
from pathlib import Path
from typing import Any

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder

FREE = ("out", "resume", "root", "device", "file", "csv")  # say where things are now, as the first call may not


def given_options(context: Any) -> dict[str, Any]:
    """The arguments and options of a call that differ from their defaults, by the names of the parameters."""
    values = {each: context.params.get(each.name) for each in context.command.params}
    return {each.name: value for each, value in values.items() if value not in (None, [], (), each.default)}


def as_command(context: Any, scales: dict[str, tuple[str, ...]]) -> str:
    """The options of this call as JSON for ``take_up``, with the scales of targets that were chosen on a terminal."""
    given = given_options(context) | {name: list(texts) for name, texts in scales.items() if texts}
    return json.dumps(
        {name: value for name, value in given.items() if name not in ("out", "resume", "root", "device")}, default=str
    )


def take_up(context: Any) -> None:
    """Adds the options of the call that began the training in --out, where it has kept them.

    Raises InputError for an option that contradicts them.
    """
    out = RunFolder(Path(context.params["out"]))
    path = next((each.command for each in (out, out.fold(0)) if each.command.exists()), None)
    if path is None:  # of an earlier release, or not begun
        return
    try:
        kept = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"{path} is damaged: remove it, and repeat the options of the training") from None
    parameters, given = {each.name: each for each in context.command.params}, given_options(context)
    for name in given.keys() - set(FREE):
        if json.loads(json.dumps(given[name])) != kept.get(name):
            before = f"with {kept[name]}" if name in kept else "without it"
            option = parameters[name].opts[0]
            raise InputError(
                f"{option} contradicts {out}, which was begun {before}: leave it out, or choose another --out"
            )
    if given.keys() & {"file", "csv"}:
        kept = {name: value for name, value in kept.items() if name not in ("file", "csv")}
    context.params |= {name: value for name, value in kept.items() if name in parameters and name not in given}
