"""The table of scores of a target and the weights in words, by hand."""

from graphormer_sepnorm.table_model.report.scores import scores_grid, scores_section, weight_words
from tests.unit.table_model.report.conftest import reported

FACTS = {
    "n": 9,
    "scores": {"stack": {"mae": 0.5, "r2": None}, "mean": {"mae": 1.0, "r2": 0.0}},
    "interval": {"stack": [0.4, 0.61234], "mean": None},
}


def test_the_scores_of_a_target_stand_with_their_interval():
    grid = scores_grid("a", FACTS, "mae", ("mae", "r2"))
    assert grid.rows == (
        ("prediction", "0.500", "not defined", "0.400 to 0.612"),
        ("mean of the training labels", "1.000", "0.00", "not defined"),
    )
    assert grid.header[-1] == "95 % interval of the MAE" and grid.words == "a, 9 labels"
    alone = {"n": 1, "scores": {"stack": {"mae": 0.5}}}
    assert scores_grid("a", alone, "mae", ("mae",)).header == ("", "MAE")


def test_a_metric_that_is_not_usually_reported_comes_first():
    scores = {"logloss": 0.4, "rocauc": 0.8, "prauc": 0.7, "accuracy": 0.6}
    told = {"targets": {"a": {"n": 9, "scores": {"stack": scores}}}, "weights": {"kernel": {"a": 1.0}}}
    (grid,) = scores_section(reported(told, "classification", ("a",), "logloss")).grids
    assert grid.header == ("", "log loss", "ROC-AUC", "PR-AUC", "accuracy")
    assert grid.rows == (("prediction", "0.400", "0.800", "0.700", "0.600"),)


def test_a_single_member_has_no_row_of_its_own_and_no_weight():
    scores = {"stack": {"mae": 0.5}, "kernel": {"mae": 0.5}, "mean": {"mae": 1.0}}
    facts = {"n": 9, "scores": scores}
    assert [row[0] for row in scores_grid("a", facts, "mae", ("mae",)).rows] == [
        "prediction",
        "mean of the training labels",
    ]
    facts["scores"] = scores | {"forest": {"mae": 0.6}}
    assert [row[0] for row in scores_grid("a", facts, "mae", ("mae",)).rows][1] == "only the kernel"
    told = {"targets": {}, "weights": {"kernel": {"a": 1.0}}}
    assert scores_section(reported(told)).words[1] == "The model has one member, the kernel."


def test_weights_in_words():
    assert weight_words({"kernel": {"a": 0.25, "b": 0.5}, "forest": {"a": 0.1, "b": 0.1}}) == (
        "kernel 0.25 to 0.50, forest 0.10"
    )
