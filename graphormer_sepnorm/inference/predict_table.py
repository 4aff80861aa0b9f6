"""Predictions for whole tables into a file, row for row."""

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.data.tables import STANDARD_INPUT, TABLE_KINDS, Row, kind_of, with_free_names
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Predictions, Predictor
from graphormer_sepnorm.inference.table_to_file import as_csv, is_standard_output, write_table
from graphormer_sepnorm.runs.zoo import shipped_models

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def predict_table(
    predictor: Predictor,
    source: str | Sequence[str],
    out: Path,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    resume: bool = False,
) -> dict:
    """Writes a table with all columns of the input, one per target and ``error``; with a spread if there are models.

    Args:
        predictor: the models.
        out: CSV to write, named ``.csv``, or ``.tsv`` for tabs; "-" for CSV on standard output.
        source, smiles_column, delimiter, strict, resume: as ``write_table``.

    Returns, Raises: as ``write_table``; InputError also for another suffix.
    """
    suffix = ".csv" if is_standard_output(out) else out.suffix.lower()
    if suffix not in DELIMITERS:
        raise InputError(f"predictions are written as {' or '.join(DELIMITERS)}, not as {out.suffix or out.name!r}")
    layout = partial(PredictionLines, predictor, DELIMITERS[suffix])
    return write_table(predictor, layout, source, out, smiles_column, delimiter, strict, resume)


def models_and_source(arguments: Sequence[str]) -> tuple[list[str], str | list[str]]:
    """Names of models, and the table or the SMILES that follow them.

    The last argument is a table if it is "-", a file, or has the suffix of one. Otherwise the arguments at the end that
    are neither files, nor folders, nor names of shipped weights are SMILES.

    Raises:
        InputError: one of these SMILES cannot be read, or there is no model or no input.
    """
    *models, last = arguments
    is_table = last == STANDARD_INPUT or Path(last).exists() or kind_of(last) in TABLE_KINDS
    smiles = [] if is_table else list(takewhile(lambda name: not is_model(name), reversed(arguments[1:])))[::-1]
    if not models or not (is_table or smiles):
        raise InputError(
            "name a model and an input: graphormer-sepnorm predict MODEL INPUT -o OUT.csv, or predict MODEL SMILES"
        )
    if is_table:
        return models, last
    for text in smiles:
        try:
            read_smiles(text)
        except InputError as error:
            raise InputError(f"{text} is neither a file nor readable as SMILES: {error}") from None
    return list(arguments[: -len(smiles)]), smiles


def is_model(name: str) -> bool:
    """Whether a name means a model without a doubt."""
    return Path(name).exists() or name in shipped_models()


class PredictionLines:
    """The columns of the input, one per target, its spread over several models, and ``error``."""

    def __init__(self, predictor: Predictor, delimiter: str, columns: list[str]):
        self.predictor = predictor
        self.delimiter = delimiter
        self.columns = columns
        self.with_spread = len(predictor.models) > 1

    def header(self) -> bytes:
        """A name that the input has already is made another."""
        added = [*self.predictor.targets]
        if self.with_spread:
            added += [f"{target}_std" for target in self.predictor.targets]
        return as_csv([[*self.columns, *with_free_names([*added, "error"], self.columns)]], self.delimiter)

    def encode(self, rows: list[Row], errors: list[str], predictions: Predictions) -> bytes:
        """One line per row; empty predictions where there is an error."""
        values = np.hstack([predictions.values, predictions.spread]) if self.with_spread else predictions.values
        lines = (
            [*row.fields, *("" if error else f"{number:.7g}" for number in numbers), error]
            for row, error, numbers in zip(rows, errors, values.tolist(), strict=True)
        )
        return as_csv(lines, self.delimiter)

    def complete(self, grown: Path) -> Path:
        return grown
