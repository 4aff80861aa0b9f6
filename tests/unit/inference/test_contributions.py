import csv

import numpy as np

from graphormer_sepnorm.inference.contributions import HEADER, write_contributions
from graphormer_sepnorm.inference.explain import Explanation


def test_a_line_per_atom_and_per_fragment(tmp_path):
    toluene = Explanation("Cc1ccccc1", "a = 2", 2.0, "contribution to a", np.array([0.5, 0, 0, 0.1, 0, 0, 0]), 1.4)
    write_contributions(tmp_path / "a.csv", {3: toluene})
    with open(tmp_path / "a.csv", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == HEADER and len(lines) == 7 + 2
    begin = ["4", "", "Cc1ccccc1", "2", "contribution to a", "1.4"]
    assert lines[0] == [*begin, "atom", "C", "1", "0.5"]
    assert lines[7:] == [
        [*begin, "fragment", "C", "1", "0.5"],
        [*begin, "fragment", "c1ccccc1", "2 3 4 5 6 7", "0.1"],
    ]


def test_without_a_sum_there_is_no_baseline(tmp_path):
    write_contributions(tmp_path / "a.csv", {0: Explanation("C", "a = 2", 2.0, "share", np.array([1.0]), None)})
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "1,,C,2,share,,atom,C,1,1"
