"""Predictions for whole tables into a file, row for row."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.columns import Columns
from graphormer_sepnorm.inference.predict import Comparer, PredictingModel, Predictions
from graphormer_sepnorm.inference.resumable_writer import as_csv, is_standard_output, write_table
from graphormer_sepnorm.runs.zoo import shipped_models
from graphormer_sepnorm.tables.formats import STANDARD_INPUT, Row, is_table_name

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
    columns = Columns(predictor, interval, domain)
    reader = Comparer(predictor) if domain else predictor
    unfamiliar: Counter[str] = Counter()
    layout = partial(PredictionLines, columns, unfamiliar, DELIMITERS[suffix])
    options = (str(interval), str(domain), predictor.digest)
    result = write_table(reader, layout, source, out, smiles_column, delimiter, strict, resume, options)
    return {**result, "unfamiliar": unfamiliar.total() if predictor.trust else None}


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
    """The columns of the input, and those of the predictions.

    Args:
        added: the columns of the predictions.
        unfamiliar: counts the warnings.
        columns: of the input.
    """

    def __init__(self, added: Columns, unfamiliar: Counter[str], delimiter: str, columns: list[str]):
        self.added = added
        self.unfamiliar = unfamiliar
        self.delimiter = delimiter
        self.columns = columns

    def header(self) -> bytes:
        return as_csv([[*self.columns, *self.added.names(self.columns)]], self.delimiter)

    def encode(self, rows: list[Row], errors: list[str], predictions: Predictions) -> bytes:
        """One line per row; empty predictions where there is an error."""
        numbers = self.added.numbers(predictions).tolist()
        texts = list(zip(*self.added.texts(predictions), strict=True)) or [()] * len(rows)
        lines = []
        for row, error, values, said in zip(rows, errors, numbers, texts, strict=True):
            found = ["" if error else f"{value:.7g}" for value in values]
            lines.append([*row.fields, *found, *("" if error else text for text in said), error])
        warned = (bool(text and not error) for text, error in zip(predictions.warnings, errors, strict=True))
        self.unfamiliar["rows"] += sum(warned)
        return as_csv(lines, self.delimiter)

    def complete(self, grown: Path) -> Path:
        return grown
