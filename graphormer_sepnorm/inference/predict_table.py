"""Predictions for whole tables into a file, row for row."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import NO_TRUST, Comparer, PredictingModel, Predictions
from graphormer_sepnorm.inference.resumable_writer import as_csv, is_standard_output, write_table
from graphormer_sepnorm.inference.trust import Intervals
from graphormer_sepnorm.runs.zoo import shipped_models
from graphormer_sepnorm.tables.formats import STANDARD_INPUT, Row, is_table_name, with_free_names

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def predict_table(
    predictor: PredictingModel,
    source: str | Sequence[str],
    out: Path,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    resume: bool = False,
    interval: float | None = None,
    domain: bool = False,
) -> dict:
    """Writes a table with all columns of the input, one per target and ``error``; with a spread if there are models.

    Args:
        predictor: the models.
        out: CSV to write, named ``.csv``, or ``.tsv`` for tabs; "-" for CSV on standard output.
        source, smiles_column, delimiter, strict, resume: as ``write_table``.
        interval: confidence of the intervals in ``NAME_low`` and ``NAME_high``; None: none.
        domain: whether ``similarity``, ``cls_distance``, ``nearest`` and ``warning`` compare a row with the
            training molecules.

    Returns:
        as ``write_table``, and ``unfamiliar``, the number of readable rows of this call with what no training molecule
        has; None if nothing is known of the training molecules.

    Raises:
        InputError: as ``write_table``; another suffix; intervals or a domain that the predictor cannot give.
    """
    suffix = ".csv" if is_standard_output(out) else out.suffix.lower()
    if suffix not in DELIMITERS:
        raise InputError(f"predictions are written as {' or '.join(DELIMITERS)}, not as {out.suffix or out.name!r}")
    if interval is not None:
        known_intervals(predictor).half_widths(interval, np.zeros((1, len(predictor.targets))))
    reader = Comparer(predictor) if domain else predictor
    unfamiliar: Counter[str] = Counter()
    layout = partial(PredictionLines, predictor, interval, domain, unfamiliar, DELIMITERS[suffix])
    options = (str(interval), str(domain), predictor.digest)
    result = write_table(reader, layout, source, out, smiles_column, delimiter, strict, resume, options)
    return {**result, "unfamiliar": unfamiliar.total() if predictor.trust else None}


def known_intervals(predictor: PredictingModel) -> Intervals:
    """The intervals of a predictor; raises InputError if it has none."""
    if predictor.kind != "regression":
        raise InputError("--interval is for models of numbers; the probabilities of two classes are calibrated instead")
    if predictor.trust is None:
        raise InputError(f"--interval: {NO_TRUST}")
    if predictor.trust.intervals is None:
        raise InputError(
            "--interval: the model has no intervals, because a target had no labels in its validation split"
        )
    return predictor.trust.intervals


def models_and_source(arguments: Sequence[str]) -> tuple[list[str], str | list[str]]:
    """Names of models, and the table or the SMILES that follow them.

    The last argument is a table if it is "-", a file, or has the suffix of one. Otherwise the arguments at the end that
    are neither files, nor folders, nor names of shipped weights are SMILES.

    Raises:
        InputError: one of these SMILES cannot be read, or there is no model or no input.
    """
    *models, last = arguments
    is_table = last == STANDARD_INPUT or Path(last).exists() or is_table_name(last)
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
    """The columns of the input, one per target, its spread over several models, and ``error``.

    Args:
        interval, domain: as ``predict_table``.
        unfamiliar: counts the warnings.
        columns: of the input.
    """

    def __init__(
        self,
        predictor: PredictingModel,
        interval: float | None,
        domain: bool,
        unfamiliar: Counter[str],
        delimiter: str,
        columns: list[str],
    ):
        self.predictor = predictor
        self.interval = interval
        self.domain = domain
        self.unfamiliar = unfamiliar
        self.delimiter = delimiter
        self.columns = columns

    def header(self) -> bytes:
        """A name that the input has already is made another."""
        targets = self.predictor.targets
        added = [*targets]
        if self.predictor.gives_spread:
            added += [f"{target}_std" for target in targets]
        if self.interval is not None:
            added += [f"{target}_{end}" for end in ("low", "high") for target in targets]
        if self.domain:
            added += ["similarity", "cls_distance", "nearest", "warning"]
        return as_csv([[*self.columns, *with_free_names([*added, "error"], self.columns)]], self.delimiter)

    def encode(self, rows: list[Row], errors: list[str], predictions: Predictions) -> bytes:
        """One line per row; empty predictions where there is an error."""
        nearest = predictions.nearness.molecule if predictions.nearness else [""] * len(rows)
        said = zip(self.numbers(predictions).tolist(), nearest, predictions.warnings, strict=True)
        lines = []
        for row, error, (numbers, molecule, warning) in zip(rows, errors, said, strict=True):
            found = ["" if error else f"{number:.7g}" for number in numbers]
            if self.domain:
                found += ["", ""] if error else [molecule, warning]
            self.unfamiliar["rows"] += bool(warning and not error)
            lines.append([*row.fields, *found, error])
        return as_csv(lines, self.delimiter)

    def numbers(self, predictions: Predictions) -> np.ndarray:
        """The columns of numbers, in the order of the header: [M, columns]."""
        columns = [predictions.values]
        if self.predictor.gives_spread:
            columns.append(predictions.spread)
        if self.interval is not None:
            half_widths = known_intervals(self.predictor).half_widths(self.interval, predictions.spread)
            columns += [predictions.values - half_widths, predictions.values + half_widths]
        if predictions.nearness is not None:
            columns += [predictions.nearness.similarity[:, None], predictions.nearness.distance[:, None]]
        return np.hstack(columns)

    def complete(self, grown: Path) -> Path:
        return grown
