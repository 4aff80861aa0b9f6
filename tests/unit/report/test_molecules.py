"""Single molecules of a report: the worst predictions with their neighbours, and pairs, by hand."""

from types import SimpleNamespace

import numpy as np

from graphormer_sepnorm.predict.classes import ClassSets
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import Intervals
from graphormer_sepnorm.report.page import Picture
from graphormer_sepnorm.report.predictions import (
    changes_grid,
    class_facts,
    cliffs_section,
    example_of,
    pairs_section,
    value_facts,
    worst_section,
)
from graphormer_sepnorm.table_model.pairs import Change
from tests.unit.report.conftest import fitted, reported, table

NAN = float("nan")


def test_the_worst_predictions_stand_with_the_nearest_training_molecule():
    trained = ["CCCCO", "c1ccccc1O"]
    rows = [*(("train", smiles, [1.25, 2]) for smiles in trained), ("test", "CCCCCO", [0, 1]), ("test", "C", [5, NAN])]
    intervals = Intervals(np.tile([[1.0], [2.5], [9]], 2), np.zeros(2))
    trust, zeros = {"domain": fit_domain(trained), "intervals": intervals, "class_sets": None}, np.zeros((2, 2))
    page = reported(
        {"trust": {"coverage": {"0.5": {"a": 0.5, "b": 0.5}}}},
        labelled=table(*rows, names={1: "A1", 2: "A2", 3: "B1"}),
        fitted=fitted([[1.25, 2], [0.75, NAN]], ("A1", "A2"), trust=trust),
        test={"y": np.array([[0, 1], [5, NAN]]), "prediction": np.array([[2.0, 1], [4.5, 0]]), "spread": zeros},
        looked=SimpleNamespace(smiles=["CCCCCO", "C"], errors=np.array([1.0, NAN]), warnings=["heavy atoms: 6", ""]),
    )
    (worst,) = worst_section(page).molecules
    assert (worst.name, worst.smiles) == ("B1", "CCCCCO")
    assert worst.facts == (
        ("measured a", "0.00"), ("predicted a", "2.00"), ("50 % interval of a", "-0.50 to 4.50"),
        ("error of a", "2.00"), ("measured b", "1"), ("predicted b", "1"), ("50 % interval of b", "-2 to 4"),
        ("error of b", "0"), ("warning", "heavy atoms: 6"),
    )  # fmt: skip
    near = worst.partner
    assert (near.name, near.smiles) == ("Nearest training molecule: A1", "CCCCO")
    (similarity, *labels) = near.facts
    assert similarity[0] == "similarity" and 0.5 < float(similarity[1]) < 1
    assert labels == [("measured a", "1.25"), ("measured b", "2")]


def test_the_error_of_a_class_is_the_distance_of_its_probability():
    page = reported(
        {"trust": {}},
        "classification",
        ("a",),
        class_names=(("no", "yes"),),
        fitted=fitted([[1.0]], trust={"intervals": None, "class_sets": two_sets(0.3, 0.5)}),
        labelled=table(("test", "C", [0.0])),
        test={"y": np.array([[0.0]]), "prediction": np.array([[0.75]])},
    )
    assert list(value_facts(page, 0)) == [
        ("measured", "no"), ("predicted", "yes (probability of yes: 0.750)"), ("90 % set", "yes"), ("error", "0.750"),
    ]  # fmt: skip


def test_several_classes_are_one_fact():
    test = {"y": np.array([[0.0, 1.0, 0.0]]), "prediction": np.array([[0.7, 0.1, 0.2]])}
    names = (("low", "mid", "high"),)
    sets = ClassSets(np.tile(np.linspace(0.3, 0.9, 20)[:, None, None], (1, 1, 3)))
    parts = {"test": test, "class_names": names}
    facts = [("measured", "mid (probability 0.100)"), ("predicted", "low (probability 0.700)")]
    for each, more in ((sets, [("90 % set", "low")]), (None, [])):
        known = fitted([[0.0] * 3], trust={"class_sets": each})
        page = reported({"trust": {}}, "multiclass", ("low", "mid", "high"), fitted=known, **parts)
        assert list(class_facts(page, 0)) == facts + more


def two_sets(zero: float, one: float) -> ClassSets:
    """Sets of one target, of which molecules of class 0 and 1 had at least these probabilities of their class."""
    return ClassSets(np.stack([np.linspace(least, 1, 20) for least in (zero, one)], axis=1)[:, None])


def test_pairs_with_a_bound_have_a_column():
    changes = [Change("O[*:1]", "N[*:1]", ((0, 1),) * 3, 1.0, 0.5, *counts) for counts in ((2, 0, 1), (0, 0, 0))]
    grid = changes_grid("a", changes, ["CCO", "CCN"], np.array([1.0, 2]))
    assert [row[-1] for row in grid.rows] == ["2 up, 1 undecided", ""] and len(grid.header) == len(grid.rows[0])
    assert changes_grid("a", changes[1:], ["C[", "CCN"], np.ones(2)).header == grid.header[:-1]


def test_a_pair_that_cannot_be_drawn_has_the_parts_and_the_most_typical_pair_is_taken():
    change = Change("O[*:1]", "N[*:1]", ((0, 1), (2, 1)), 1.0, 0.5)
    assert example_of(change, ["CCO", "CCN", "C["], np.array([1.0, 3, 2])) == (change.before, change.after)
    pictures = example_of(change, ["CCO", "CCN", "C["], np.array([2.0, 3, 1]))
    assert [each.words for each in pictures] == [change.before, change.after]


def test_pairs_of_the_rows_that_were_learnt_from():
    """Chlorine in place of hydroxyl adds 1; ethanol is written twice, with unlike numbers."""
    rests = ["c1ccccc1CCC{}", "c1ccncc1CCC{}", "C1CCCCC1CNC{}"]
    smiles = [rest.format(part) for part in ("O", "Cl") for rest in rests] + ["CCO", "OCC"]
    labels = [1, 2, 3, 2, 3, 4, 7, 9]
    rows = [(split, text, [label, 0]) for split, text, label in zip(["val", "train"] * 4, smiles, labels, strict=True)]
    page = reported(labelled=table(*rows, ("test", "C", [99, 0])), fitted=fitted([[1, 0]]))
    found = pairs_section(page)
    (grid,) = (grid for grid in found.grids if grid.words == "a")
    rows = [tuple(cell.words if isinstance(cell, Picture) else cell for cell in row) for row in grid.rows]
    assert ("O[*:1]", "Cl[*:1]", "+1.00", "0.00", "3") in rows
    assert all(isinstance(cell, Picture) for row in grid.rows for cell in row[:2])
    assert found.title == "Matched pairs" and not found.molecules
    cliffs = cliffs_section(page)
    assert cliffs.title == "Activity cliffs"
    steepest = cliffs.molecules[0]
    assert (steepest.name, steepest.smiles, steepest.partner.smiles) == ("row 7", "CCO", "OCC")
    assert steepest.facts == (("measured a", "7"),)
    assert steepest.partner.facts == (("measured a", "9"), ("difference of a", "2"), ("similarity of the pair", "1.00"))
    for section in (pairs_section, cliffs_section):
        assert section(reported(kind="classification")) is None
        assert section(reported(labelled=table(("train", "C", [1, 0])), fitted=fitted([[1, 0]]))) is None
