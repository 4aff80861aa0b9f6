"""Predictions near the lowest or highest value that an assay reports, which are bounds rather than values."""

from rdkit import Chem

from graphormer_sepnorm.chem.basic_properties import PROPERTIES
from graphormer_sepnorm.runs.zoo import AssayLimit


def limit_words(value: float, limit: AssayLimit, mol: Chem.Mol | None) -> str:
    """How to read a prediction near a limit of its assay; "" for any other prediction.

    Args:
        value: on its scale; NaN: there is no prediction.
        limit: the limit of the assay.
        mol: the molecule; None: it could not be read.
    """
    if mol is None or value != value:
        return ""
    if limit.unit == "uM":
        value = 1000 * 10**value / PROPERTIES["MolWt"](mol)
    if limit.side == "more":
        return "near the upper limit of the assay: read as at least" if value >= limit.value else ""
    return "near the lower limit of the assay: read as at most" if value <= limit.value else ""
