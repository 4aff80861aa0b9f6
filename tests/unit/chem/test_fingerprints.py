import hashlib
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.rdReducedGraphs import GetErGFingerprint
from rdkit.DataStructs import TanimotoSimilarity

from graphormer_sepnorm.chem.fingerprints import (
    BITS,
    KINDS,
    SIZE,
    UNRECORDED,
    count_fingerprints,
    counters,
    known_kinds,
    morgan_bits,
    morgan_counts,
    packed,
    pick_diverse,
)
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError

DRUG = "C[C@H](N)C(=O)Nc1ccc(Cl)c(S(=O)(=O)N2CCOCC2)c1"
MOLS = [read_smiles(text) for text in ["CCO", "OCC", "CCCO", "c1ccccc1", "CCCCO", "c1ccccc1O"]]


def test_environments_of_ethane_are_counted_by_hand():
    """Two equal carbons, and their bond, which belongs to both and counts once."""
    counts = morgan_counts(read_smiles("CC"))
    assert counts.shape == (SIZE,)
    assert sorted(counts[counts > 0].tolist()) == [1, 2]


def test_bits_are_the_environments_that_occur_however_the_molecule_is_written():
    first, second = read_smiles("OCC(=O)c1ccccc1"), read_smiles("c1cc(C(CO)=O)ccc1")
    assert list(morgan_bits(first).GetOnBits()) == np.flatnonzero(morgan_counts(first)).tolist()
    assert TanimotoSimilarity(morgan_bits(first), morgan_bits(second)) == 1
    assert TanimotoSimilarity(morgan_bits(first), morgan_bits(read_smiles("CCN"))) < 0.5


def test_bytes_have_the_bits():
    bits = morgan_bits(read_smiles("CC(=O)Oc1ccccc1C(=O)O"))
    row = packed(bits)
    assert (row.dtype, row.shape) == (np.uint8, (SIZE // 8,))
    assert np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist() == list(bits.GetOnBits())


@pytest.mark.parametrize(
    ("count", "distance", "picked"),
    [
        (4, 0, [0, 1, 2, 3]),
        (4, 0.3, [0, 2, 3, 4]),  # OCC is CCO
        (2, 0.3, [0, 2]),
        (4, 0.9, [0, 3, 1, 2]),  # two that differ so much, then the first of the others
        (9, 0.3, [0, 2, 3, 4, 5, 1]),
    ],
)
def test_the_preferred_ones_that_differ_come_first(count, distance, picked):
    assert pick_diverse(MOLS, count, distance) == picked


def test_a_version_of_bits_never_changes():
    """The training domain of models has them: what a changed function computes is a new version."""
    bits = packed(morgan_bits(read_smiles(DRUG))).tobytes()
    assert {BITS[-1]: hashlib.sha256(bits).hexdigest()[:8]} == {"morgan-bits 1": "a241f796"}


DIGESTS = {
    "morgan 1": "7b00929f", "feature-morgan 1": "b9db7a94", "atom-pairs 1": "57f3e7bb",
    "chiral-atom-pairs 1": "7dcc3ef9", "feature-atom-pairs 1": "331ce2d7", "torsions 1": "f942225f",
    "torsions 2": "cfa0e7f4", "erg 1": "00bd382e",
}  # fmt: skip


def by_kind(smiles: str) -> dict[str, np.ndarray]:
    counts = count_fingerprints([smiles]).toarray().reshape(len(KINDS), SIZE)
    return {kind.split()[0]: row for kind, row in zip(KINDS, counts, strict=True)}


def test_counts_by_hand():
    butanol = by_kind("CCCCO")
    assert len(KINDS) == 7 and butanol["morgan"].dtype == np.uint16
    for pairs in ("atom-pairs", "chiral-atom-pairs", "feature-atom-pairs"):
        assert butanol[pairs].sum() == 5 * 4 / 2, "pairs of atoms"
    assert butanol["torsions"].sum() == 2, "paths of four atoms"
    np.testing.assert_array_equal(butanol["morgan"], morgan_counts(read_smiles("CCCCO")))


def test_the_reduced_graph_is_counted_in_tenths():
    """Two hydroxyls: a donor pair, an acceptor pair, two mixed pairs; at neighbouring distances 0.3 instead of 1."""
    found = by_kind("OCCCCCO")["erg"]
    assert sorted(found[found > 0].tolist()) == [3, 3, 3, 3, 6, 6, 10, 10, 20]


def test_only_chiral_pairs_tell_mirror_images_apart():
    left, right = by_kind("CC[C@H](N)C(=O)O"), by_kind("CC[C@@H](N)C(=O)O")
    assert [kind for kind in left if (left[kind] != right[kind]).any()] == ["chiral-atom-pairs"]


@pytest.mark.parametrize("smiles", [DRUG, "CC1CO1", "O=C(NC1CC1)C1CC1C", "C1C2CN12", "CC1(C)OC1C(=O)c1ccccc1"])
def test_counts_do_not_depend_on_how_a_smiles_is_written(smiles):
    spellings = Chem.MolToRandomSmilesVect(read_smiles(smiles), 10, randomSeed=0)
    found = count_fingerprints([smiles, *spellings], tuple(counters())).toarray()
    assert (found == found[0]).all()


@pytest.mark.parametrize(("smiles", "torsions"), [("CCCCO", 2), ("CC1CO1", 2), ("C1CC1", 0), ("C1CCC1", 4)])
def test_torsions_have_four_different_atoms(smiles, torsions):
    assert by_kind(smiles)["torsions"].sum() == torsions


def test_files_name_their_kinds():
    """A file without names has version 1 of the torsions, in which a ring of three atoms is one."""
    assert known_kinds({}, Path("a")) == UNRECORDED and known_kinds({"kinds": [*KINDS]}, Path("a")) == KINDS
    first, second = (count_fingerprints(["CC1CO1", "O1CC1C"], kinds).toarray() for kinds in (UNRECORDED, KINDS))
    assert (first[0] == first[1]).all() and first.sum() == second.sum() + 2 and (second[0] == second[1]).all()
    with pytest.raises(InputError, match="a needs 'morgan 9', which this release does not know"):
        known_kinds({"kinds": ["morgan 1", "morgan 9"]}, Path("a"))
    with pytest.raises(InputError, match="a is damaged"):
        known_kinds({"kinds": [3]}, Path("a"))
    for facts in ({}, {"other": ["b 2"]}):
        assert known_kinds(facts, Path("a"), ("b 1",), ("b 1", "b 2"), "other") == tuple(facts.get("other", ["b 1"]))
    with pytest.raises(InputError, match="'morgan 1'"):
        known_kinds({"other": ["morgan 1"]}, Path("a"), ("b 1",), ("b 1",), "other")


@pytest.mark.parametrize("kind", counters())
def test_a_kind_never_changes(kind):
    """Models have counts of it: what a changed function computes is a new version, and this one stays."""
    counts = count_fingerprints([DRUG, "CC1CO1"], (kind,)).toarray().astype(np.int64)
    assert hashlib.sha256(counts.tobytes()).hexdigest()[:8] == DIGESTS[kind]


@pytest.mark.parametrize("smiles", ["O=C1NC(=O)C(=O)N1", "CCCCC1(CC)C(=O)NC(=O)NC1=O", "C#CCNC(=O)CCc1c(C)nn(C)c1C"])
def test_other_fingerprints_of_a_molecule_do_not_change_its_reduced_graph(smiles):
    """RDKit's function gives other numbers for a molecule whose properties another function has computed."""
    fresh = np.rint(10 * np.asarray(GetErGFingerprint(read_smiles(smiles))))
    np.testing.assert_array_equal(by_kind(smiles)["erg"][: len(fresh)], fresh)
