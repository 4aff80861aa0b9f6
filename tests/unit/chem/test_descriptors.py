import hashlib

import numpy as np
import pytest

from graphormer_sepnorm.chem.descriptors import (
    NAMES,
    VERSIONS,
    WIDTH,
    all_descriptors,
    descriptors,
    fast_descriptors,
    kept_descriptors,
)


def test_descriptors_of_ethanol_by_hand():
    (row,) = descriptors(["CCO"])
    values = dict(zip(NAMES, row.tolist(), strict=True))
    assert values["HeavyAtomCount"] == 3 and values["NumHDonors"] == 1 and values["RingCount"] == 0
    assert values["MolWt"] == pytest.approx(2 * 12.011 + 6 * 1.008 + 15.999, abs=1e-3)
    assert row.dtype == np.float32


def test_unreadable_molecules_are_missing_and_do_not_affect_others(tmp_path):
    """A name behind a SMILES may have bytes that are not UTF-8."""
    rows = kept_descriptors(tmp_path, ["CCO", "C(", "", "C" * 1001, "C\udce9", "CCO caf\udce9", "CCO"])
    assert np.isnan(rows[1:5]).all() and not np.isnan(rows[0]).all()
    np.testing.assert_array_equal(rows[[0, 0]], rows[5:])


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


def test_each_molecule_has_its_row():
    rows = fast_descriptors(["CCO", "[Na+].[Cl-]", "C[Pt]C", "OCC"])
    np.testing.assert_allclose(rows[0], rows[3], rtol=1e-6)
    assert not np.isinf(rows).any()
    assert fast_descriptors([]).shape == (0, WIDTH)


def test_a_version_never_changes():
    """Models have learnt its values and their order: what a changed function computes is a new version."""
    values = np.round(fast_descriptors(["C[C@H](N)C(=O)Nc1ccc(Cl)c(S(=O)(=O)N2CCOCC2)c1", "CC1CO1"]), 3) + 0.0
    digest = hashlib.sha256(values.astype(np.float32).tobytes()).hexdigest()[:8]
    assert {VERSIONS[-1]: digest} == {"descriptors 1": "3c03339a"}
