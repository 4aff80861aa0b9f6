import csv
from functools import partial

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.explain_table import HEADER, MOST_MOLECULES, explain_table, write_contributions
from graphormer_sepnorm.explain.explanations import Explanation, explained_rows, integrated_gradients
from graphormer_sepnorm.predict.pretrained import Graphormer
from tests.tiny import save_tiny


@pytest.fixture(scope="module")
def explain(tmp_path_factory):
    model = Graphormer.from_pretrained(save_tiny(tmp_path_factory.mktemp("model")))
    return partial(explained_rows, partial(integrated_gradients, model), "ogb")


def test_several_smiles(explain, tmp_path):
    explanations, problems = explain_table(explain, ["CCO", "CCN"], None)
    assert [(row, found.smiles) for row, found in explanations.items()] == [(0, "CCO"), (1, "CCN")] and not problems
    for unreadable in ("C(C", ["CCO", "C(C"]):
        with pytest.raises(InputError, match=r"C\(C"):
            explain_table(explain, unreadable, tmp_path / "x.svg")
    with pytest.raises(InputError, match=r"t\.csv is a table: name it without other molecules"):
        explain_table(explain, ["CCO", "t.csv"], tmp_path / "x.svg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.csv", "out"])
def test_a_table_that_is_too_long_is_refused(explain, tmp_path, name):
    table = tmp_path / "table.csv"
    table.write_text("smiles\n" + "C\n" * (MOST_MOLECULES + 5))
    with pytest.raises(InputError, match="the table has more than 10,000 molecules"):
        explain_table(explain, str(table), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_rows_of_a_table_are_told_by_their_numbers(explain, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("smiles\nCCO\nC(C\nCCN\n")
    explanations, problems = explain_table(explain, str(table), tmp_path / "out.csv")
    assert {row: found.smiles for row, found in explanations.items()} == {0: "CCO", 2: "CCN"}
    assert problems.keys() == {1} and "C(C" in str(problems[1])
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"1", "3"} and len(lines) == 1 + 2 * (3 + 1)
    with pytest.raises(InputError, match="is the input table"):
        explain_table(explain, str(table), table)
    with pytest.raises(InputError, match="tabel"):
        explain_table(explain, str(tmp_path / "tabel.csv"), tmp_path / "out.csv")


def test_names_of_rows_are_those_of_the_table(explain, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("Compound ID,smiles\nC-1,CCO\n,CCN\nC-3,C(C\n")
    explanations, _ = explain_table(explain, str(table), tmp_path / "out.csv")
    assert [found.name for found in explanations.values()] == ["C-1", ""]
    assert explanations[0].facts()["name"] == "C-1" and "name" not in explanations[1].facts()
    with open(tmp_path / "out.csv", newline="") as file:
        assert {(line["row"], line["name"]) for line in csv.DictReader(file)} == {("1", "C-1"), ("2", "")}


def test_a_line_per_atom_and_per_fragment(tmp_path):
    toluene = Explanation("Cc1ccccc1", "a = 2", 2.0, "contribution to a", np.array([0.5, 0, 0, 0.1, 0, 0, 0]), 1.4)
    write_contributions(tmp_path / "a.csv", {3: toluene})
    with open(tmp_path / "a.csv", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == HEADER and len(lines) == 7 + 2
    begin = ["4", "", "Cc1ccccc1", "2", "contribution to a", "1.4"]
    assert lines[0] == [*begin, "atom", "C", "1", "0.5"]
    assert lines[7:] == [[*begin, "fragment", "C", "1", "0.5"], [*begin, "fragment", "c1ccccc1", "2 3 4 5 6 7", "0.1"]]
