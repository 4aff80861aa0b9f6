"""What is known of the training molecules beside their structures."""

import numpy as np
import pytest

from graphormer_sepnorm.predict.training_rows import USUAL_DECIMALS, TrainingRows

LABELS = np.array([[3.0, np.nan], [1, np.nan], [np.nan, np.nan], [2, np.nan], [2, np.nan]])


def test_percentiles_by_hand():
    """Of 1, 2, 2, 3: one label and half of two are below 2."""
    rows, values = TrainingRows.of(LABELS), np.array([0.0, 2, 2.5, 3, 9, np.nan])
    np.testing.assert_array_equal(rows.percentiles(values, 0), [0, 50, 75, 87.5, 100, np.nan])
    assert np.isnan(rows.percentiles(values, 1)).all()


def test_censored_labels_count_in_percentiles_where_they_can_be_compared():
    """Labels <5, <5, <9, >8, 6 and 7: below 5.5 are two of six; <9 cannot be compared with it and counts half."""
    nan, inf = np.nan, np.inf
    labels = np.array([nan, nan, nan, nan, 6, 7])[:, None]
    bounds = np.array([[-inf, 5], [-inf, 5], [-inf, 9], [8, inf], [-inf, inf], [-inf, inf]])[:, None]
    found = TrainingRows.of(labels, bounds).percentiles(np.array([5.5, 4.0, 9.0]), 0)
    assert found.tolist() == pytest.approx([100 * 2.5 / 6, 100 * 1.5 / 6, 100 * 5.5 / 6])
    ends = TrainingRows.of(labels, bounds).percentile_ends(np.array([5.5, 4.0, 9.0, 6.0]), 0)
    np.testing.assert_allclose(ends, np.array([[2, 0, 5, 2.5], [3, 3, 6, 3.5]]) * 100 / 6)
    only = TrainingRows.of(np.full((1, 1), nan), np.array([[[-inf, 5]]])).percentiles(np.array([4.0, 6.0]), 0)
    assert only.tolist() == [50, 100]


def test_values_beyond_a_bound_are_not_above_all_labels():
    """Of 6, 7 and a third >8.30, 8.22 is above two thirds, and 8.32 possibly above the last."""
    bounds = np.array([[-np.inf, np.inf], [-np.inf, np.inf], [8.3, np.inf]])[:, None]
    rows = TrainingRows.of(np.array([[6.0], [7], [np.nan]]), bounds)
    assert rows.percentiles(np.array([8.22, 8.32]), 0).tolist() == pytest.approx([200 / 3, 500 / 6])
    assert (rows.best(0, minimize=False), rows.best(0, minimize=True)) == (8.3, 6)
    assert np.isnan(TrainingRows.of(np.full((2, 1), np.nan)).best(0, minimize=True))


def test_a_label_of_a_quarter_of_the_molecules_is_found():
    """3 of 5 and 1 of 4 labels; 1 of 5 is less than a quarter."""
    labels = np.array([[0.68, 1, 1, np.nan], [0.68, 2, 2, np.nan], [0.5, 3, 3, np.nan], [0.68, 4, 4, np.nan]])
    labels = np.vstack([labels, [2, np.nan, 5, np.nan]])
    assert TrainingRows.of(labels).frequent == [(0.68, 0.6), (1, 0.25), None, None]


def test_decimals_are_those_of_nine_of_ten_labels():
    whole = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 0.123])
    columns = [whole, whole / 10, np.log10(whole), np.full(10, np.nan)]
    assert TrainingRows.of(np.stack(columns, axis=1)).decimals == [0, 1, USUAL_DECIMALS, USUAL_DECIMALS]
    small = [1.7e-6 * whole, 1e-9 * whole, np.array([0.0031, 0.052, 0.11, 0.0475, 0.2013] * 2)]
    assert TrainingRows.of(np.stack(small, axis=1)).decimals == [7, 10, 3], "two digits of half of the labels"
    far = 1e5 + np.random.default_rng(0).normal(0, 0.001, (9, 1))
    assert TrainingRows.of(far).decimals == [5], "two digits of their standard deviation"


def test_censored_labels_are_shown_with_their_sign():
    bounds = np.full((5, 2, 2), [-np.inf, np.inf])
    bounds[2, 0, 1], bounds[3, 0, 0] = -6.5, 10
    rows = TrainingRows.of(LABELS, bounds)
    assert rows.censored(0) == ["", "", "<-6.5", ">10", ""] and rows.censored(1) == [] and rows.fits(5)
    assert rows.labelled[0] == 5
    assert TrainingRows.of(LABELS).censored(0) == [] and not TrainingRows.of(LABELS, bounds[:, :1]).fits(5)


def test_names_may_have_any_characters_but_end_with_their_line():
    rows = TrainingRows.of(LABELS)
    assert rows.names == [""] * 5
    named = rows.named(["a\nb", "", "café", "\udce9", "5"])
    assert named.names == ["a b", "", "café", "?", "5"]
    assert named.fits(5) and not named.fits(4) and not rows.named(["a"]).fits(5)
