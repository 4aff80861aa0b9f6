"""Logarithms in the unit of the measurements, by hand."""

import pytest

from graphormer_sepnorm.predict.describing import measured_unit, measured_words, shown_unit


@pytest.mark.parametrize(
    ("scale", "description", "unit"),
    [
        ("log10", "log10 of clearance, mL/min/kg", "mL/min/kg"),
        ("log10", "log10 of efflux ratio", ""),
        ("log10", "", "in the unit of the table"),
        ("-log10 nM", "", "nM"),
    ],
)
def test_the_unit_is_that_of_the_description_or_the_scale(scale, description, unit):
    assert measured_unit(scale, description) == unit


@pytest.mark.parametrize("fraction", ["unbound", "bound"])
def test_a_percentage_says_which_fraction_it_is(fraction):
    description = f"log10 of {fraction} fraction in human plasma, %"
    assert shown_unit("log10", description) == f"% {fraction}" and measured_unit("log10", description) == "%"
    assert shown_unit("log10", "log10 of recovery, %") == "%" and shown_unit("log10", "log10 of dose bound, mg") == "mg"


def test_a_logarithm_is_brought_back_with_its_interval():
    assert measured_words(1.0, "log10", "%") == "= 10.0 %"
    assert measured_words(1.0, "log10", "%", 0.5, 2.0) == "= 10.0 % (3.16 to 100)"
    assert measured_words(0.5, "log10", "") == "= 3.16"
    assert measured_words(7.0, "-log10 nM", "nM", 6.0, 8.0) == "= 100 nM (10.0 to 1,000)"
