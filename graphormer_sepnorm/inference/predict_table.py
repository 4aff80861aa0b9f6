"""Predictions for whole tables into a file, row for row."""

from functools import partial
from pathlib import Path

import numpy as np

from graphormer_sepnorm.data.tables import Row, with_free_names
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Predictions, Predictor
from graphormer_sepnorm.inference.table_to_file import as_csv, write_table

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def predict_table(
    predictor: Predictor,
    source: str,
    out: Path,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    resume: bool = False,
) -> dict:
    """Writes a table with all columns of the input, one per target and ``error``; with a spread if there are models.

    Args:
        predictor: the models.
        out: CSV to write, named ``.csv``, or ``.tsv`` for tabs.
        source, smiles_column, delimiter, strict, resume: as ``write_table``.

    Returns, Raises: as ``write_table``; InputError also for another suffix.
    """
    if out.suffix.lower() not in DELIMITERS:
        raise InputError(f"predictions are written as {' or '.join(DELIMITERS)}, not as {out.suffix or out.name!r}")
    layout = partial(PredictionLines, predictor, DELIMITERS[out.suffix.lower()])
    return write_table(predictor, layout, source, out, smiles_column, delimiter, strict, resume)


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
