import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import NAMES, all_descriptors, descriptors, kept_descriptors


def test_descriptors_of_ethanol_by_hand():
    (row,) = descriptors(["CCO"])
    values = dict(zip(NAMES, row.tolist(), strict=True))
    assert values["HeavyAtomCount"] == 3 and values["NumHDonors"] == 1 and values["RingCount"] == 0
    assert values["MolWt"] == pytest.approx(2 * 12.011 + 6 * 1.008 + 15.999, abs=1e-3)
    assert row.dtype == np.float32


def test_unreadable_molecules_are_missing_and_do_not_affect_others():
    rows = descriptors(["CCO", "C(", "", "C" * 1001, "CCO"])
    assert np.isnan(rows[1:4]).all()
    np.testing.assert_array_equal(rows[0], rows[4])
    assert not np.isnan(rows[0]).all()


def test_descriptors_are_cached_and_a_damaged_file_is_replaced(tmp_path):
    first = kept_descriptors(tmp_path, ["CCO", "CC"])
    (path,) = tmp_path.glob("*.npz")
    np.savez_compressed(path, values=first + 1)
    np.testing.assert_array_equal(kept_descriptors(tmp_path, ["CCO", "CC"]), first + 1)  # read, not computed
    path.write_bytes(path.read_bytes()[:100])
    np.testing.assert_array_equal(kept_descriptors(tmp_path, ["CCO", "CC"]), first)
    np.testing.assert_array_equal(np.load(path)["values"], first)
    kept_descriptors(tmp_path, ["CC", "CCO"])
    assert len(list(tmp_path.glob("*.npz"))) == 2, "another order is another file"


def test_many_molecules_agree_with_single_ones(tmp_path):
    np.testing.assert_array_equal(all_descriptors(["CCO", "CC"], tmp_path), descriptors(["CCO", "CC"]))
    assert all_descriptors([], tmp_path).shape == (0, len(NAMES))


def test_a_byte_that_is_not_utf8_affects_only_its_row(tmp_path):
    rows = kept_descriptors(tmp_path, ["CCO", "C\udce9", "CC caf\udce9"])
    assert np.isnan(rows[1]).all() and not np.isnan(rows[[0, 2]]).all(axis=1).any()
