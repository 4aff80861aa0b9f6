import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks.scales import (
    DECADES,
    better_scale,
    limited,
    measured,
    modelled,
    modelled_name,
    molar_scale,
    named_unit,
)


def test_numbers_on_their_scales_by_hand():
    assert modelled(100.0, "", "y") == 100.0 and modelled(100.0, "log10", "y") == pytest.approx(2)
    assert modelled(100.0, "-log10 nM", "y") == pytest.approx(7)
    assert modelled(2.0, "-log10 uM", "y") == pytest.approx(5.69897)
    assert modelled(1e-6, "-log10 M", "y") == pytest.approx(6)


def test_predictions_come_back_to_what_was_measured():
    scales = ("", "log10", *(molar_scale(unit) for unit in DECADES))
    values = np.array([[0.5] * len(scales), [30.0] * len(scales)])
    there = np.array([[modelled(row[0], scale, "y") for scale in scales] for row in values.tolist()])
    np.testing.assert_allclose(measured(there, scales), values)
    np.testing.assert_array_equal(measured(there, ()), there)


def test_units():
    assert molar_scale("\u00b5M") == molar_scale("uM") == molar_scale(" \u03bcM") == "-log10 uM"
    with pytest.raises(InputError, match="'mg/l' is no unit of a concentration: give one of M, mM, uM, nM, pM"):
        molar_scale("mg/l")


@pytest.mark.parametrize(
    ("column", "scale", "name"),
    [
        ("IC50", "", "IC50"), ("IC50", "-log10 nM", "pIC50"), ("IC50_nM", "-log10 nM", "pIC50"),
        ("Ki (uM)", "-log10 uM", "pKi"), ("IC50_uM", "-log10 nM", "-log10(IC50_uM)"),
        ("value", "-log10 nM", "-log10(value)"), ("nM", "-log10 nM", "-log10(nM)"),
        ("Solubility", "log10", "log10(Solubility)"),
    ],
)  # fmt: skip
def test_names_on_a_scale(column, scale, name):
    assert modelled_name(column, scale) == name


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("IC50 [uM]", "uM"), ("IC50 (\u00b5M)", "uM"), ("EC50[\u03bcM]", "uM"), ("Ki (nM)", "nM"),
        ("IC50_mM ", "mM"), ("Kd M", "M"), ("IC50nM", "nM"), ("IC50_UM", ""), ("HLM", ""), ("logS", ""),
        ("solubility", ""),
    ],
)  # fmt: skip
def test_the_unit_of_a_column_is_at_the_end_of_its_name(column, unit):
    assert named_unit(column) == unit


@pytest.mark.parametrize(
    ("column", "unit", "labels", "scale"),
    [
        ("y", "", [1, 1001], "log10"), ("y", "", [1, 1000], ""), ("y", "", [np.nan, 0, 1, 1001], "log10"),
        ("y", "", [-1, 1, 1001], ""), ("y", "", [0, np.nan], ""), ("IC50_nM", "", [10, 101], "-log10 nM"),
        ("IC50_nM", "", [10, 100], ""), ("Ki", "uM", [10, 101], "-log10 uM"), ("recovery", "%", [10, 101], ""),
        ("target A Ki", "", [10, 101], "log10"), ("pIC50", "", [0.1, 9], ""),
    ],
)  # fmt: skip
def test_labels_over_many_magnitudes_have_a_better_scale(column, unit, labels, scale):
    assert better_scale(column, np.array(labels, float), unit) == scale


def test_values_are_moved_to_the_limits_of_their_target_and_no_others():
    values = np.array([[1.5, -3.0, 9.0], [2.5, np.nan, -9.0]], np.float32)
    found = limited(values, ((None, 2.0), (-1.0, 1.0), (None, None)))
    np.testing.assert_array_equal(found, np.array([[1.5, -1, 9], [2, np.nan, -9]], np.float32))
    assert found.dtype == np.float32 and limited(values, ()) is values
