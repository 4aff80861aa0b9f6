"""How the command ``train`` understands a table, for the page; runs in the worker process."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.commands.own_table import detected, only_target
from graphormer_sepnorm.interfaces.commands.train import RunOptions
from graphormer_sepnorm.interfaces.web.reading import asked_column, read_rows
from graphormer_sepnorm.interfaces.web.schemas import LookedColumn, LookedTarget, TableLook, TrainingChoice
from graphormer_sepnorm.recipes import find_recipe
from graphormer_sepnorm.table_run import to_learn
from graphormer_sepnorm.tables.formats import kind_of
from graphormer_sepnorm.tables.formats.table import NoColumn, WholeTable
from graphormer_sepnorm.tables.label_text import is_missing, shortened
from graphormer_sepnorm.tables.labels import LabelledTable, read_labelled, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.task_guess import Column, look_at_columns
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import named_unit

MOST_EXAMPLES, MOST_REASONS = 3, 20
MOST_CLASSES = 12


def look_at(path: Path, shown: str, most_rows: int, choice: TrainingChoice) -> TableLook:
    """The table in a file, with the problem if it cannot be trained on; raises InputError as ``read_rows``."""
    try:
        found = read_rows(path, shown, choice.smiles_column, most_rows)
    except NoColumn as error:
        problem = as_text(asked_column(shown, choice.smiles_column, error.columns))
        return TableLook([LookedColumn(as_text(name)) for name in error.columns], problem=problem)
    rows, place, header = (
        found.rows,
        found.columns.index(found.smiles_column),
        int(kind_of(path) not in (".sdf", ".smi")),
    )
    content = WholeTable(found.columns, [*rows], found.delimiter, place, header)
    columns, smiles_column = list(looked_columns(content)), as_text(found.smiles_column)
    try:
        seed = find_recipe(RunOptions(csv=shown).found_recipe).train.seed
        targets = choice.targets or list(only_target(str(path), content, choice.given()))
        choice = choice.model_copy(update={"targets": targets})
        options, sentences = detected(str(path), content, choice.given(), choice.task or None, seed)
        labelled, remarks = to_learn(options, read_labelled(options, options.featurizer, content), table_task(options))
    except InputError as error:
        problem = as_text(error.sentence.replace(str(path), shown))
        return TableLook(columns, len(rows), smiles_column, problem=problem)
    first = sorted(labelled.skipped)[:MOST_REASONS]
    return TableLook(
        columns,
        len(rows),
        smiles_column,
        choice.targets,
        list(looked_targets(options, labelled)),
        dict(Counter(row.split for row in labelled.rows)),
        [as_text(sentence) for sentence in [*sentences, *remarks]],
        len(labelled.skipped),
        [(row, as_text(smiles), as_text(why)) for row, smiles, why in first],
    )


def looked_columns(content: WholeTable) -> Iterator[LookedColumn]:
    summaries = {column.name: column for column in look_at_columns(content, tuple(content.columns))}
    for place, name in enumerate(content.columns):
        texts = [row.fields[place].strip() for row in content.rows if not row.error]
        filled = [text for text in texts if not is_missing(text)]
        examples = [as_text(shortened(text)) for text in dict.fromkeys(filled)][:MOST_EXAMPLES]
        kind = content_of(summaries[name])
        yield LookedColumn(as_text(name), "SMILES" if place == content.smiles_place else kind, len(filled), examples)


def content_of(column: Column) -> Literal["numbers", "classes", "texts"]:
    if column.is_numeric:
        return "numbers"
    return "classes" if 1 < len(column.texts) <= MOST_CLASSES < column.labels or column.is_binary else "texts"


def looked_targets(options: TableOptions, labelled: LabelledTable) -> Iterator[LookedTarget]:
    y, columns = labelled.labels(), options.targets if len(options.targets) == len(options.names) else ()
    for place, name in enumerate(options.names):
        known = y[:, place][~np.isnan(y[:, place])]
        if TASKS[options.kind].predicts_probabilities:
            zero, one = labelled.class_names[place] if len(labelled.class_names) == len(options.names) else ("0", "1")
            values = f"{int((known == 0).sum()):,} x {zero}, {int((known == 1).sum()):,} x {one}"
        else:
            values = f"{known.min():.4g} to {known.max():.4g}" if len(known) else ""
        units = [*labelled.units[place : place + 1], *map(named_unit, columns[place : place + 1])]
        bounds = sum(place in row.bounds for row in labelled.rows)
        yield LookedTarget(as_text(name), len(known), bounds, next(filter(None, units), ""), as_text(values))
