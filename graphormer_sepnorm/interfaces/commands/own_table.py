"""Conversion of a command's options to those of a table."""

import sys
from typing import Any, Literal

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system.torchrun import rank
from graphormer_sepnorm.tables.formats import WholeTable
from graphormer_sepnorm.tables.formats.table import names_shown
from graphormer_sepnorm.tables.labels import task_of_table
from graphormer_sepnorm.tables.options import TableOptions


def options_of_table(
    path: str,
    content: WholeTable,
    given: dict[str, Any],
    task: Literal["regression", "classification"] | None,
    seed: int,
) -> TableOptions:
    """The options of a table, with the task detected from its labels; prints the task to standard error.

    Args:
        path: of the table.
        content: of it.
        given: fields of ``TableOptions`` that were given.
        task: as it was asked for.
        seed: of the split.

    Raises:
        InputError: no columns to predict are given; as ``task_of_table`` and ``TableOptions``.
    """
    targets = given.get("targets", ())
    if not targets:
        shown = names_shown(content.columns)
        raise InputError(f"name the columns to predict with --target-columns (the columns of {path}: {shown})")
    guess = task_of_table(content, targets, task)
    if guess.sentence and rank() == 0:
        print(guess.sentence, file=sys.stderr)
    return TableOptions(path, **given, kind=guess.kind, classes=guess.classes, seed=seed)
