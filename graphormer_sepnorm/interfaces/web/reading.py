"""Reading of uploaded tables in the worker process, and how the command ``train`` understands them."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.commands.own_table import detected, only_target
from graphormer_sepnorm.interfaces.commands.train import RunOptions
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.schemas import LookedColumn, LookedTarget, TableRow
from graphormer_sepnorm.recipes import find_recipe
from graphormer_sepnorm.table_run import to_learn
from graphormer_sepnorm.tables.formats import kind_of, named_column, open_table
from graphormer_sepnorm.tables.formats.cells import SPREADSHEET_KINDS, explaining, refuse_large, texts_of_sheet
from graphormer_sepnorm.tables.formats.table import NoColumn, Row, WholeTable, printable
from graphormer_sepnorm.tables.label_text import is_missing, shortened
from graphormer_sepnorm.tables.labels import LabelledTable, read_labelled, table_task
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.rows import condition_text, condition_texts, places_of, separators
from graphormer_sepnorm.tables.task_guess import look_at_columns
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import named_unit

MOST_CHARACTERS = 100_000_000  # of a table
MOST_EXAMPLES, MOST_REASONS = 3, 20
MOST_CLASSES = 12


def read_rows(path: Path, title: str, smiles_column: str, most_rows: int, sheet: str = "") -> WholeTable:
    """The table in a file that messages call ``title``; raises NoColumn, and InputError for none or too large a one.

    A small workbook can unpack to very many characters, and its cells can share one long text.
    """
    try:
        if kind_of(path) in SPREADSHEET_KINDS:
            refuse_large(path, str(path), MOST_CHARACTERS)
        with open_table(path, named_column(path, smiles_column or None), sheet=sheet or None) as table:
            rows, characters = list[Row](), 0
            for row in islice(table.rows, most_rows + 1):
                characters += len(row.fields) + sum(map(len, row.fields))
                if characters > MOST_CHARACTERS:
                    raise InputError(f"{title} has more than {MOST_CHARACTERS:,} characters: leave out columns or rows")
                rows.append(row)
    except InputError as error:
        error.sentence, error.options = error.sentence.replace(str(path), title), ()
        raise
    if len(rows) > most_rows:
        advice = "use the command graphormer-sepnorm for it, or a part of the table"
        raise InputError(f"{title} has more than {most_rows:,} molecules, which is the most for this page: {advice}")
    if not rows:
        raise InputError(f"{title} has no molecules")
    return WholeTable(**vars(table) | {"rows": rows})


def read_table(path: Path, title: str, smiles_column: str, most_rows: int, sheet: str) -> tuple[WholeTable, str]:
    """As ``read_rows``; with a problem and without molecules if the column that has them is not known."""
    try:
        return read_rows(path, title, smiles_column, most_rows, sheet), ""
    except NoColumn as error:
        problem, columns = asked_column(title, smiles_column, error), error.columns
    once = next((name for name, count in Counter(columns).items() if count == 1), None)
    if once is None:
        raise InputError(f"the first line of {title} should name the columns, each with another name")
    table = read_rows(path, title, once, most_rows, sheet)
    return replace(table, rows=[replace(row, smiles="") for row in table.rows]), problem


def sheets_of(path: Path) -> dict[str, list[str]]:
    """The columns of each sheet of a workbook; none for another table."""
    if kind_of(path) not in SPREADSHEET_KINDS:
        return {}
    import openpyxl  # an extra

    with explaining(path.name), contextlib.closing(openpyxl.load_workbook(path, read_only=True)) as book:
        return {sheet.title: next(texts_of_sheet(sheet, 1), []) for sheet in book.worksheets}


def asked_column(title: str, smiles_column: str, error: NoColumn) -> str:
    """Asks for the column of the molecules in a table where there is none, or several, of this name."""
    sheets = f", or call it SMILES in its sheet; the sheets are {error.sheets}" if error.sheets else ""
    if not smiles_column:
        return f"choose the column of {title} that has the SMILES{sheets}"
    number = error.columns.count(smiles_column)
    has = f"{title} has {f'{number} columns' if number else 'no column'} {printable(smiles_column)!r}"
    return f"{has}: choose the one that has the SMILES{sheets}"


def under_conditions(table: WholeTable, names: tuple[str, ...], values: dict[str, str], title: str) -> list[TableRow]:
    """The rows with the named conditions: of the table, else given for all rows; raises InputError for neither."""
    places = places_of(title, table.columns, [name for name in names if name in table.columns])
    if missing := [name for name in names if name not in places and not values.get(name, "").strip()]:
        raise InputError(f"the predictions depend on {', '.join(missing)}: fill in the field, or add such a column")
    columns, rows = list(places.values()), []
    of_form = {name: condition_text(values[name]) for name in names if name not in places}
    texts = condition_texts(table.rows, columns, separators(table.rows, columns, table.delimiter))
    for row, each in zip(table.rows, texts, strict=True):
        of_row = of_form | dict(zip(places, each, strict=True))
        rows.append(TableRow(row.fields, row.smiles, row.error, conditions=tuple(of_row[name] for name in names)))
    return rows


def look_at_table(path: Path, title: str, most_rows: int, choice: schemas.TrainingChoice) -> schemas.TableLook:
    """The table in a file, with the problem if it cannot be trained on; raises InputError as ``read_rows``."""
    try:
        table = read_rows(path, title, choice.smiles_column, most_rows, choice.sheet)
    except NoColumn as error:
        problem, columns = as_text(asked_column(title, choice.smiles_column, error)), map(as_text, error.columns)
        return schemas.TableLook(list(map(LookedColumn, columns)), problem=problem, sheets=list(sheets_of(path)))
    column = as_text(table.columns[table.smiles_place])
    look = schemas.TableLook(list(looked_columns(table)), len(table.rows), column, sheets=list(sheets_of(path)))
    try:
        seed = find_recipe(RunOptions(csv=title).found_recipe).train.seed
        targets = choice.targets or list(only_target(str(path), table, choice.given()))
        choice = choice.model_copy(update={"targets": targets})
        options, sentences = detected(str(path), table, choice.given(), choice.task or None, seed)
        labelled, remarks = to_learn(options, read_labelled(options, options.featurizer, table), table_task(options))
    except InputError as error:
        return replace(look, problem=as_text(error.sentence.replace(str(path), title)))
    first = sorted(labelled.skipped)[:MOST_REASONS]
    return replace(
        look,
        chosen=choice.targets,
        targets=list(looked_targets(options, labelled)),
        splits=dict(Counter(row.split for row in labelled.rows)),
        sentences=[as_text(sentence) for sentence in [*sentences, *remarks]],
        skipped=len(labelled.skipped),
        reasons=[(row + table.header, as_text(smiles), as_text(why)) for row, smiles, why in first],
    )


def looked_columns(content: WholeTable) -> Iterator[LookedColumn]:
    for place, column in enumerate(look_at_columns(content, tuple(content.columns))):
        texts = [row.fields[place].strip() for row in content.rows if not row.error]
        filled = [text for text in texts if not is_missing(text)]
        examples = [as_text(shortened(text)) for text in dict.fromkeys(filled)][:MOST_EXAMPLES]
        is_class = 1 < len(column.texts) <= MOST_CLASSES < column.labels or column.is_binary
        kind: schemas.Content = "numbers" if column.is_numeric else "classes" if is_class else "texts"
        kind = "SMILES" if place == content.smiles_place else kind
        yield LookedColumn(as_text(column.name), kind, len(filled), examples)


def looked_targets(options: TableOptions, labelled: LabelledTable) -> Iterator[LookedTarget]:
    y, columns = labelled.labels(), options.targets if len(options.targets) == len(options.names) else ()
    for place, name in enumerate(options.names):
        labels = y[:, place][~np.isnan(y[:, place])]
        if TASKS[options.kind].predicts_probabilities:
            zero, one = labelled.class_names[place] if len(labelled.class_names) == len(options.names) else ("0", "1")
            values = f"{int((labels == 0).sum()):,} x {zero}, {int((labels == 1).sum()):,} x {one}"
        else:
            values = f"{labels.min():.4g} to {labels.max():.4g}" if len(labels) else ""
        units = [*labelled.units[place : place + 1], *map(named_unit, columns[place : place + 1])]
        bounds = sum(place in row.bounds for row in labelled.rows)
        yield LookedTarget(as_text(name), len(labels), bounds, next(filter(None, units), ""), as_text(values))
