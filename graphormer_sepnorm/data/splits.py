"""How the rows of a table are divided into training, validation and test."""

import numpy as np

FRACTIONS = {"train": 0.8, "val": 0.1, "test": 0.1}


def random_split(num_rows: int, seed: int) -> list[str]:
    """The splits of rows in a random order, by ``FRACTIONS``."""
    train_end, val_end = split_ends(num_rows)
    names = np.full(num_rows, "test", object)
    order = np.random.default_rng(seed).permutation(num_rows)
    names[order[:val_end]] = "val"
    names[order[:train_end]] = "train"
    return names.tolist()


def scaffold_split(scaffolds: list[str]) -> list[str]:
    """The splits of rows by their scaffolds, by ``FRACTIONS``: the largest groups first, each in one split.

    As MoleculeNet does it (Wu et al., Chem. Sci. 2018): a group goes to training as long as it fits in there, then to
    validation, then to test.
    """
    groups: dict[str, list[int]] = {}
    for row, scaffold in enumerate(scaffolds):
        groups.setdefault(scaffold, []).append(row)
    train_end, val_end = split_ends(len(scaffolds))
    names, in_train, in_val = [""] * len(scaffolds), 0, 0
    for rows in sorted(groups.values(), key=lambda rows: (-len(rows), rows[0])):
        if in_train + len(rows) <= train_end:
            name, in_train = "train", in_train + len(rows)
        elif in_train + in_val + len(rows) <= val_end:
            name, in_val = "val", in_val + len(rows)
        else:
            name = "test"
        for row in rows:
            names[row] = name
    return names


def split_ends(num_rows: int) -> tuple[int, int]:
    """How many rows are in training, and how many in training and validation."""
    train_end = round(FRACTIONS["train"] * num_rows)
    return train_end, train_end + round(FRACTIONS["val"] * num_rows)
