import math

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import UNDECIDED
from graphormer_sepnorm.tables.measurements import TargetReader, read_labels
from graphormer_sepnorm.tables.options import TableOptions


def read(column: str, texts: list[str], **options) -> list:
    """The label of each text, its bound if it is one, or the reason why it cannot be read."""
    reader = TargetReader.of(column, TableOptions("a.csv", (column,), **options), UNDECIDED, texts)
    rows = [read_labels([reader], [text], 1) for text in texts]
    return [gaps.get(0) or bounds.get(0) or labels[0] for labels, bounds, gaps in rows]


def test_labels_are_converted_to_the_unit_of_the_column():
    assert read("IC50", ["5 nM", "1.5 uM", "<2 nM", "7 nM"]) == [5, 1500, "<2.0", 7]
    assert read("IC50_uM", ["5", "500 nM"]) == [5, 0.5]
    assert read("y", ["45%", "3 %"]) == [45, 3]
    for texts in (["45%", "3 %", "0.5"], ["0.5", "7", "45%"], ["5 nM", "7 nM", "8"]):
        assert "write all in one unit" in read("y", texts)[2]


def test_a_bound_is_turned_where_larger_numbers_are_smaller_on_the_scale():
    texts = ["10", "<10", ">1 uM", "1e-5 M"]
    assert read("IC50", texts, negative_log_molar=("nM",)) == [8, ">8.0", "<6.0", 5]
    assert read("y", ["<10", ">100"], log10=("y",)) == ["<1.0", ">2.0"]


def test_a_threshold_makes_classes_of_numbers_and_bounds():
    texts = ["5", "100", "150", "<5", ">10000", "<100", ">50", "<1 uM", "2 uM", "0.05 uM"]
    found = read("IC50_nM", texts, kind="classification", active_below="100 nM")
    assert found[:6] + found[8:] == [1, 0, 0, 1, 0, 1, 0, 1]
    assert found[6:8] == [f"IC50_nM is '{text}', which may be on either side of 100" for text in (">50", "<1 uM")]
    above = read("pIC50", ["7", "6.5", ">8", "<5", ">5", ""], kind="classification", active_above="6.5")
    assert above[:4] == [1, 0, 1, 0] and "either side" in above[4] and math.isnan(above[5])
    with pytest.raises(InputError, match="y has no unit"):
        read("y", ["5"], kind="classification", active_below="100 nM")
