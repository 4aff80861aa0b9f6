import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.label_text import converted, parts_of, read_threshold, unit_of_column


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("12", ("12", "")), ("12 +- 3", ("12", "")), ("1,5 \u00b1 0,2 \u00b5M", ("1,5", "uM")),
        ("12 nM +/- 3 nM", ("12", "nM")), ("~120", ("120", "")), ("ca. 120", ("120", "")), ("45%", ("45", "%")),
        ("45 %", ("45", "%")), ("1.2e-5 M", ("1.2e-5", "M")), ("5nmol/L", ("5", "nM")), ("< 5 nM", ("<5", "nM")),
        (">10 %", (">10", "%")), ("HLM", ("HLM", "")), ("5 mg", ("5 mg", "")), ("1e-5", ("1e-5", "")),
        ("12 +- x", ("12 +- x", "")), ("n.d.", ("n.d.", "")), ("", ("", "")),
    ],
)  # fmt: skip
def test_parts_of_measurements_by_hand(text, parts):
    assert parts_of(text) == parts


def test_the_unit_of_a_column_is_that_of_most_labels():
    assert unit_of_column(["5 nM", "1 uM", "7 nM", "", "8"]) == "nM"
    assert unit_of_column(["5", "1 uM", "7"]) == "" and unit_of_column([]) == ""


def test_concentrations_are_converted():
    assert converted(1.5, "uM", "nM") == 1500 and converted(5, "nM", "uM") == 0.005
    assert read_threshold("100 nM") == (100, "nM") and read_threshold("6.5") == (6.5, "")
    with pytest.raises(InputError, match="the threshold is 'potent'"):
        read_threshold("potent")
