"""How tables are divided: by hand, by properties that every splitter has, and against DeepChem's rule."""

from collections import Counter

import numpy as np
import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables import splits
from graphormer_sepnorm.tables.splits import SPLITTERS, Duplicate, Sizes, Structures
from tests.molecules import structures_of

SHARES = [Sizes(), Sizes(0.6, 0.2, 0.2), Sizes(0.5, 0.2, 0.3)]
NAMES = ("train", "val", "test")


@pytest.fixture(scope="module")
def structures() -> Structures:
    """150 molecules of the sample, fifteen of them twice."""
    smiles = sample_table().smiles.tolist()[:150]
    return structures_of([*smiles, *smiles[:15]])


@pytest.fixture(scope="module")
def classes(structures) -> np.ndarray:
    """One positive in ten; the same for equal molecules."""
    return np.array([[float(sum(map(ord, key)) % 10 == 0)] for key in structures.keys])


@pytest.fixture(scope="module")
def forms() -> Structures:
    """Salts, tautomers and stereoisomers, some of them with scaffolds of their own."""
    core = [f"{'C' * length}c1ccccc1[C@H](F)C(=O)" for length in range(10)]
    ends = ("O", "[O-].[Na+]", "O[Na]", "O.C(CNCc1ccccc1)NCc1ccccc1")
    smiles = [text.replace("@", mark) + end for text in core for end in ends for mark in ("@", "", "@@")]
    return structures_of([*smiles, "Cc1c[nH]cn1", "Cc1cnc[nH]1", "Oc1ccccn1", "O=c1cccc[nH]1"])


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("sizes", SHARES, ids=str)
def test_every_row_is_in_one_split_of_about_its_size_and_no_group_is_torn(name, sizes, structures, classes):
    groups = SPLITTERS[name].groups(structures)
    largest = max(Counter(groups).values())
    found = SPLITTERS[name](structures, classes, sizes, 3)
    assert len(found) == len(structures.smiles) and set(found) == set(NAMES)
    for split, share in vars(sizes).items():
        over = found.count(split) - share * len(found)
        assert -2 * largest < over < largest + 1
    assert len(set(zip(groups, found, strict=True))) == len(set(groups))
    assert len(set(zip(structures.keys, found, strict=True))) == len(set(structures.keys))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITTERS)
def test_the_seed_decides(name, structures):
    found = [SPLITTERS[name](structures, None, Sizes(), seed) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert (found[0] == found[2]) == (name == "scaffold-deepchem")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SPLITTERS if name != "scaffold-deepchem"])
def test_the_order_of_the_rows_does_not_matter(name, structures, classes):
    order = np.random.default_rng(5).permutation(len(structures.smiles))
    found = np.array(SPLITTERS[name](structures, classes, Sizes(), 0))
    assert SPLITTERS[name](structures.take(order.tolist()), classes[order], Sizes(), 0) == found[order].tolist()


@pytest.mark.parametrize("name", SPLITTERS)
def test_few_rows_are_divided_too(name):
    for rows in range(5):
        found = structures_of(["CCO", "c1ccccc1", "CCN", "C1CC1"][:rows])
        names = SPLITTERS[name](found, np.zeros((rows, 1)), Sizes(), 0)
        assert len(names) == len(splits.time_split(np.arange(rows), found.keys, Sizes())) == rows
        assert set(names) <= set(NAMES)


def deepchem(groups: list[str], train: float, val: float, rows: int) -> tuple[list[int], list[int], list[int]]:
    """What DeepChem's ScaffoldSplitter documents: sets sorted by (size, first row) descending, three lists filled."""
    sets: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        sets.setdefault(group, []).append(row)
    filled: tuple[list[int], list[int], list[int]] = ([], [], [])
    for _, members in sorted(((len(rows), rows[0]), rows) for rows in sets.values())[::-1]:
        if len(filled[0]) + len(members) <= train * rows:
            filled[0].extend(members)
        elif len(filled[0]) + len(filled[1]) + len(members) <= (train + val) * rows:
            filled[1].extend(members)
        else:
            filled[2].extend(members)
    return filled


@pytest.mark.parametrize("seed", range(20))
def test_deepchem_on_random_groups(seed):
    groups = [str(number) for number in np.random.default_rng(seed).zipf(1.5, 137)]
    found = np.array(splits.largest_first(groups, None, Sizes(), 0))
    for split, rows in zip(NAMES, deepchem(groups, 0.8, 0.1, 137), strict=True):
        assert np.flatnonzero(found == split).tolist() == sorted(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITTERS)
def test_every_splitter_and_its_folds_keep_families_together(name, forms):
    for names in (SPLITTERS[name](forms, None, Sizes(), 0), *splits.fold_splits(SPLITTERS[name], forms, None, 3, 0)):
        assert len(set(zip(forms.families, names, strict=True))) == len(set(forms.families)) == 12


def test_random_splits_have_the_rounded_sizes():
    for rows in range(1, 60):
        found = splits.stratified([str(row) for row in range(rows)], None, Sizes(), 0)
        assert all(abs(found.count(split) - share * rows) < 1 for split, share in vars(Sizes()).items())


def test_clusters_hold_what_is_alike_and_part_what_is_not():
    alike = [f"CC(C)Cc1ccc(cc1)C(C){'C' * n}C(=O)O" for n in range(3, 6)]
    found = SPLITTERS["butina"].groups(structures_of([*alike, "O=C1CCCCC1Cl", "FC(F)(F)c1ccncc1"]))
    assert len(set(found[:3])) == 1 and len(set(found)) == 3


def test_times_by_hand():
    times = np.array([2005, 2001, 2002, 2003, 2004, 2010, 2009, 2006, 2007, 2008])
    keys = [*"abcdefghij"]
    assert splits.time_split(times, keys, Sizes()) == [*["train"] * 5, "test", "val", *["train"] * 3]
    keys[5] = "b"  # measured in 2001 and again in 2010: both count from 2001
    assert splits.time_split(times, keys, Sizes())[5] == "train"
    assert splits.time_split(times, keys, Sizes())[6] == "test"


@pytest.mark.parametrize("seed", range(10))
def test_no_training_row_is_later_than_a_test_row_and_no_time_is_torn(seed):
    times = np.random.default_rng(seed).integers(1990, 2030, 200).astype(float)
    found = np.array(splits.time_split(times, [str(row) for row in range(200)], Sizes()))
    assert times[found == "train"].max() < times[found == "val"].min()
    assert times[found == "val"].max() < times[found == "test"].min()


def test_sizes():
    for text in ("80:10:10", "0.8,0.1,0.1", "80.0:10:10"):
        assert splits.read_sizes(text) == Sizes(0.8, 0.1, 0.1)
    assert Sizes().counts(1128) == {"train": 902, "val": 113, "test": 113}
    for text in ("", "80:20", "90:10:0", "80:10:20", "40:10:10", "a:b:c", "-80:90:90", "nan:1:1", "inf:1:1", "8_0:1:1"):
        with pytest.raises(InputError, match="three that add up"):
            splits.read_sizes(text)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_group_goes_where_all_of_it_has_room_and_else_is_not_trained_on(seed):
    groups = ["a"] * 16 + ["b"] * 16 + [f"single {number}" for number in range(8)]
    found = splits.balanced(groups, None, Sizes(0.5, 0.1, 0.4), seed)
    assert {found[0], found[16]} == {"train", "test"}, "4 rows of training are left for the second group of 16"
    assert [found.count(name) for name in NAMES] == [20, 4, 16]
    groups = ["a"] * 30 + [f"single {number}" for number in range(10)]
    found = splits.balanced(groups, None, Sizes(0.2, 0.2, 0.6), seed)
    assert set(found[:30]) == {"test"}
    assert [found.count(name) for name in NAMES] == [8, 2, 30]


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITTERS)
@pytest.mark.parametrize("folds", [2, 5])
def test_every_row_is_out_of_fold_once(name, folds, structures, classes):
    found = splits.fold_splits(SPLITTERS[name], structures, classes, folds, 0)
    assert np.sum(np.array(found) == "test", axis=0).tolist() == [1] * len(structures.smiles)
    groups = SPLITTERS[name].groups(structures)
    for names in found:
        assert set(names) == set(NAMES)
        assert len(set(zip(groups, names, strict=True))) == len(set(groups))
    assert found == splits.fold_splits(SPLITTERS[name], structures, classes, folds, 0)
    assert found != splits.fold_splits(SPLITTERS[name], structures, classes, folds, 1)


def test_folds_are_of_one_size_and_stratified():
    y = np.array([[1.0]] * 20 + [[0.0]] * 80)
    found = splits.fold_numbers([f"{row:03}" for row in range(100)], y, 5, 0)
    assert np.bincount(found).tolist() == [20] * 5 and np.bincount(found[:20]).tolist() == [4] * 5
    few = y[18:38]  # two of one class
    assert np.bincount(splits.fold_numbers([str(row) for row in range(20)], few, 5, 0)).tolist() == [4] * 5
    for folds in (0, 1, 4):
        with pytest.raises(InputError, match="choose from 2 to 3"):
            splits.fold_numbers(["a", "b", "c", "c"], None, folds, 0)


def test_groups_that_share_a_molecule_are_merged():
    assert splits.merge_groups(["c", "b", "a", "d", "a"], ["1", "2", "2", "1", "3"]) == ["c", "a", "a", "c", "a"]


def test_duplicates_and_labels_that_contradict_each_other():
    keys = ["x", "y", "x", "z", "y", "x"]
    y = np.array([[1.0, 0], [2, 1], [1.2, np.nan], [9, 9], [2.05, 0], [np.nan, np.nan]])
    assert splits.find_duplicates(keys, y, y, np.array([0.1, 0.0])) == [
        Duplicate("x", (0, 2, 5), (0,)),
        Duplicate("y", (1, 4), (1,)),
    ]


@pytest.mark.parametrize(
    ("ends", "conflict"),
    [
        ([(5, 5), (10, np.inf)], True), ([(5, 5), (4, np.inf)], False), ([(50, np.inf), (-np.inf, 5)], True),
        ([(5, np.inf), (-np.inf, 50)], False), ([(5, np.inf), (np.nan, np.nan)], False),
    ],
)  # fmt: skip
def test_bounds_that_contradict_each_other(ends, conflict):
    low, high = np.array(ends, np.float64).T[:, :, None]
    (found,) = splits.find_duplicates(["x", "x"], low, high, np.array([0.1]))
    assert found.conflicts == (0,) * conflict


@pytest.mark.parametrize("split", ["scaffold", "random"])
def test_three_positives_of_many_are_in_each_split_and_fold(split, structures):
    groups = SPLITTERS[split].groups(structures)
    rare = [name for name, count in Counter(groups).items() if count == 1]
    for seed in range(10):
        chosen = set(np.random.default_rng(seed).choice(rare, 3, replace=False))
        y = np.array([[float(group in chosen)] for group in groups])
        found = SPLITTERS[split].assign(groups, y, Sizes(), seed)
        assert {name for name, label in zip(found, y[:, 0], strict=True) if label} == set(NAMES)
        assert len(set(zip(groups, found, strict=True))) == len(set(groups))
    assert len(set(splits.fold_numbers(groups, y, 5, 0)[y[:, 0] == 1].tolist())) == 3
    for division in splits.fold_splits(SPLITTERS[split], structures, y, 3, 0):
        assert {name for name, label in zip(division, y[:, 0], strict=True) if label} == set(NAMES)


def test_a_split_that_has_each_class_is_left_as_it_is():
    groups, y = list("abcdef"), np.array([[1.0], [0], [1], [0], [1], [0]])
    parts = np.array(["train", "train", "val", "val", "test", "test"], object)
    assert splits.with_each_class(parts.copy(), groups, y, NAMES).tolist() == parts.tolist()
    parts[4] = "train"
    assert splits.with_each_class(parts.copy(), groups, y, NAMES).tolist() == ["test", *parts[1:].tolist()]
    assert splits.with_each_class(parts.copy(), groups, None, NAMES).tolist() == parts.tolist()


@pytest.mark.parametrize(
    "drawn",
    [
        ["OC(=O)c1cccs1", "O=C([O-])c1cccs1", "O=C([O-])c1cccs1.[Na+]", "O=C(O[Na])c1cccs1"],
        ["O=C(O)c1cccs1.CNC[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO", "OC(=O)c1cccs1"],
        ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC([NH3+])C(=O)[O-]", "[2H]C(N)(C)C(=O)O.Cl", "CC(N)C(=O)O[K]"],
        ["C/C=C/c1nnn[nH]1", "CC=Cc1nnn[n-]1.[K+]", "CC=Cc1nn[nH]n1"],
        ["Sc1ccccn1", "[Na]Sc1ccccn1", "S=c1cccc[nH]1", "[S-]c1ccccn1.[K+]", "[Mg](Sc1ccccn1)Sc1ccccn1"],
        ["[Na+].[Cl-]", "[Na]Cl", "O.[Na+].[Cl-]"],
        ["N.N.[Pt+2].[Cl-].[Cl-]", "N.N.Cl[Pt]Cl", "[NH3+][Pt-2](Cl)(Cl)[NH3+].O"],
    ],
)
def test_a_family_has_all_salts_isotopes_and_stereoisomers_of_a_molecule(drawn):
    *found, other = splits.read_structures("mol", [*drawn, "CCCC(=O)O"])
    assert len({each.family for each in found}) == 1 and other.family != found[0].family
    assert len({each.key for each in found}) > 1


def test_inorganic_salts_of_one_ion_are_different_substances():
    drawn = ["Cl", "[Na+].[Cl-]", "[K+].[Cl-]", "[Ca+2].[Cl-].[Cl-]", "N.N.[Pt+2].[Cl-].[Cl-]", "[NH4+].[Cl-]"]
    for name in ("mol", "mol-without-salts", "mol-standardized"):
        found = splits.read_structures(name, drawn)
        assert len({each.family for each in found}) == len({each.key for each in found}) == len(drawn)


def test_stereo_that_is_drawn_and_stereo_that_is_lost_are_known():
    salt = "OC(=O)[C@H](O)[C@@H](O)C(=O)O.CC(N)c1ccc2ccccc2c1"
    drawn = splits.read_structures("mol", ["C[C@H](N)CC", "CC(N)CC", salt])
    assert [each.has_stereo for each in drawn] == [True, False, False]
    smiles = ["C[C@H](O)C=O", "CC(O)=C=O", salt, "CC([O-])=C(C)C(C)=O.[Na+]", "CC(/O)=C(/C)C(C)=O"]
    assert [each.loses_stereo for each in splits.read_structures("mol-tautomer", smiles)] == [False] * 4 + [True]


def test_known_molecules_are_found_in_any_spelling_and_as_salts():
    asked = splits.structures_of("mol", ["OCC", "CC(=O)[O-].[Na+]", "CCC", "C[C"])
    learnt = splits.structures_of("mol", ["CCO", "CC(=O)O", "CCO"])
    assert splits.known_molecules(asked, learnt) == {"tested_in_training": 1, "tested_related_to_training": 1}
