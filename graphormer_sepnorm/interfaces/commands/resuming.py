"""Options of a training that is continued: those of the call that began it, which its run folder keeps."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder

PLACES = ("file", "csv")  # the table may have been moved; its content is compared later
NOT_KEPT = ("out", "resume", "root", "device")


def given_options(context: Any) -> dict[str, Any]:
    """The arguments and options of a call that differ from their defaults and are kept, by parameter, as in JSON."""
    given = {each.name: context.params.get(each.name) for each in context.command.params if each.name not in NOT_KEPT}
    defaults = {each.name: each.default for each in context.command.params}
    found = {name: value for name, value in given.items() if value not in (None, [], (), defaults[name])}
    return json.loads(json.dumps(found, default=str))


def given_names(context: Any, names: Collection[str]) -> list[str]:
    """The options that were given of the parameters with these names, as on the command line."""
    given = given_options(context)
    found = [each for each in context.command.params if each.name in given and each.name in names]
    return [(each.secondary_opts if given[each.name] is False else each.opts)[0] for each in found]


def as_command(context: Any, scales: dict[str, tuple[str, ...]]) -> str:
    """The options of this call for ``take_up``, with the scales of targets, which may be chosen on a terminal."""
    return json.dumps(given_options(context) | {name: texts for name, texts in scales.items() if texts})


def take_up(context: Any) -> None:
    """Adds the options of the call that began the training in --out, if it has kept them.

    Raises InputError for an option that contradicts them. After a finished ``--quick``, training goes on without it.
    """
    out, given = RunFolder(Path(context.params["out"])), given_options(context)
    path = next((each.command for each in (out, out.fold(0)) if each.command.exists()), None)
    if path is None and given.keys() & {"file", "csv", "dataset", "files", "smiles"}:
        return  # begun by an earlier release, or not yet
    if path is None:
        raise InputError(f"{out} keeps no options of a training: name its table or --dataset, and its options")
    try:
        kept = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(f"{path} is damaged: remove it, and repeat the options of the training") from None
    was_quick = "quick" in kept and out.report.exists()
    for name, value in given.items():
        is_new = name not in kept and was_quick
        if name not in PLACES and not is_new and value != kept.get(name):
            before = f"with {kept[name]}" if name in kept else "without it"
            advice = "leave it out, or choose another --out"
            raise InputError(f"{given_names(context, [name])[0]} contradicts {out}, begun {before}: {advice}")
    left_out = (*given, *(PLACES if given.keys() & set(PLACES) else ()), *(("quick",) if was_quick else ()))
    context.params |= {name: value for name, value in kept.items() if name not in left_out and name in context.params}
