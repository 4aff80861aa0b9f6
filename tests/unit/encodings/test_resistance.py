import pytest

from graphormer_sepnorm.encodings.resistance import Resistance
from tests.unit.encodings.chains import array, chain


def test_resistances_in_series_and_in_parallel():
    """In a ring of five, one bond is parallel to four in series: 1 * 4 / 5; two to three: 2 * 3 / 5."""
    (name,) = Resistance.arrays
    assert array(Resistance(), chain(4), name)[0].tolist() == pytest.approx([0, 1, 2, 3], abs=1e-2)
    assert array(Resistance(), chain(5, ring=True), name)[0].tolist() == pytest.approx(
        [0, 0.8, 1.2, 1.2, 0.8], abs=1e-2
    )


def test_resistances_are_capped():
    (name,) = Resistance.arrays
    assert array(Resistance(cap=2.0), chain(4), name)[0].tolist() == pytest.approx([0, 1, 2, 2], abs=1e-2)
