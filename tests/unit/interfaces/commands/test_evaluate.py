from graphormer_sepnorm.interfaces.commands.evaluate import target_lines, words_on_unscored

RESULT = {
    "metric": "mae",
    "targets": {
        "a": {"n": 28, "scores": {"stack": {"mae": 0.81912}}, "interval": {"stack": [0.5771, 1.1202]}},
        "b": {"n": 1, "scores": {"stack": {"mae": 0.2}}},
        "c": {"n": 0, "scores": {"stack": {"mae": None}}},
    },
}


def test_each_target_has_a_line_with_interval_labels_and_coverage():
    coverage = {"0.9": {"a": 0.857, "b": 1.0, "c": 0.0}}
    first = "a: MAE 0.819 (95 % interval 0.577 to 1.120) on 28 labels"
    assert list(target_lines(RESULT)) == [first, "b: MAE 0.200 on 1 label"]
    told = list(target_lines(RESULT | {"trust": {"coverage": coverage}}))
    assert told == [
        f"{first}; 86 % inside the 90 % intervals",
        "b: MAE 0.200 on 1 label; 100 % inside the 90 % intervals",
    ]


def test_rows_and_labels_without_a_score_are_counted():
    assert words_on_unscored({"value": 1}) == words_on_unscored({"skipped": 0, "censored": {"a": 0}}) == ""
    assert words_on_unscored({"skipped": 2}) == "; 2 rows skipped"
    found = words_on_unscored({"skipped": 1, "censored": {"a": 1_000, "b": 1}})
    assert found == "; 1 row skipped, 1,001 bounds not in this score"
