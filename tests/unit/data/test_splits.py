from collections import Counter

import pytest

from graphormer_sepnorm.data.splits import random_split, scaffold_split, split_ends


@pytest.mark.parametrize(("rows", "ends"), [(10, (8, 9)), (100, (80, 90)), (7, (6, 7)), (3, (2, 2)), (0, (0, 0))])
def test_ends_of_splits_by_hand(rows, ends):
    assert split_ends(rows) == ends


def test_a_random_split_has_the_fractions_and_follows_its_seed():
    names = random_split(50, seed=3)
    assert Counter(names) == {"train": 40, "val": 5, "test": 5}
    assert random_split(50, seed=3) == names != random_split(50, seed=4)
    assert names != sorted(names, reverse=True), "rows are in the order of the table"


@pytest.mark.parametrize(
    ("scaffolds", "splits"),
    [
        ("aaaaabbbcd", "ttttttttve"),  # five and three fill the eight of training
        ("aaaaaaabbc", "tttttttvvt"),  # two do not fit into training, one does
        ("aaaaaaabbb", "ttttttteee"),  # three fit neither into training nor into validation
        ("abcdefghij", "ttttttttve"),  # of equal size, the first row goes first
        ("jkaaaaaaaa", "vetttttttt"),  # the largest goes first, wherever it stands
    ],
)
def test_scaffolds_by_hand(scaffolds, splits):
    found = scaffold_split(list(scaffolds))
    assert "".join({"train": "t", "val": "v", "test": "e"}[name] for name in found) == splits


def test_no_scaffold_is_in_two_splits():
    scaffolds = [f"s{row * row % 23}" for row in range(200)]
    homes = {}
    for scaffold, split in zip(scaffolds, scaffold_split(scaffolds), strict=True):
        assert homes.setdefault(scaffold, split) == split
