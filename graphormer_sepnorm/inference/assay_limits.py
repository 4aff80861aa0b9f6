"""Predictions near the lowest or highest value that an assay reports, which are bounds rather than values."""

import re

from rdkit import Chem

from graphormer_sepnorm.chem.basic_properties import PROPERTIES

LIMIT = re.compile(r"([\d.]+)( uM)? or (less|more)")


def limit_words(value: float, limit: str, mol: Chem.Mol | None) -> str:
    """How to read a prediction near a limit of its assay; "" for any other prediction.

    Args:
        value: on its scale; NaN: there is no prediction.
        limit: the predictions near the limit, as cards write them: "0.8 or less" on the scale of the predictions, or
            "110 uM or more" for log10 of ug/mL; "": the assay has no limit.
        mol: the molecule; None: it could not be read.
    """
    found = LIMIT.fullmatch(limit)
    if found is None or mol is None or value != value:
        return ""
    if found[2]:
        value = 1000 * 10**value / PROPERTIES["MolWt"](mol)
    if found[3] == "more":
        return "near the upper limit of the assay: read as at least" if value >= float(found[1]) else ""
    return "near the lower limit of the assay: read as at most" if value <= float(found[1]) else ""
