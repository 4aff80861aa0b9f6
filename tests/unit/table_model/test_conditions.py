from dataclasses import replace

import numpy as np
import pytest
from pydantic import TypeAdapter

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.domain import missing_conditions
from graphormer_sepnorm.table_model.features import MOST_WORDS, ConditionColumn, Conditions, column_of
from graphormer_sepnorm.table_model.reference import with_conditions
from graphormer_sepnorm.table_run import scorable
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions
from graphormer_sepnorm.tables.rows import LabelledRow
from graphormer_sepnorm.tables.splits import Duplicate, MoleculeStructure, Structures

CONDITIONS = Conditions.of(("temperature", "assay"), [("20.0", "b"), ("40.0", "a"), ("30.0", "b")])


def test_numbers_are_scaled_and_words_are_one_hot():
    temperature, assay = CONDITIONS.columns
    assert (temperature.words, temperature.mean, temperature.scale) == ((), 30.0, pytest.approx((200 / 3) ** 0.5))
    assert assay == ConditionColumn("assay", ("a", "b")) and CONDITIONS.width == 3
    assert CONDITIONS.encode(("20.0", "b")) == pytest.approx([-(1.5**0.5), 0, 1])


def test_a_condition_that_was_not_learnt_is_an_error_of_its_row():
    values, errors = CONDITIONS.encode_all([("30.0", "a"), ("30.0", "c"), ("", "a")])
    np.testing.assert_array_equal(values, np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], np.float32))
    assert errors == ["", "assay is 'c': the model knows a, b", "temperature is missing"]


def test_a_missing_condition_is_the_median_and_marked_or_a_word():
    rows = [("20.0", "b"), ("40.0", ""), ("", "a"), ("25.0", "b")]
    found = Conditions.of(("temperature", "assay"), rows)
    temperature, assay = found.columns
    assert (temperature.median, temperature.width, assay.words) == (25.0, 2, ("", "a", "b"))
    for text in ("", "NA"):
        assert temperature.encode(text) == [temperature.encode("25.0")[0], 1.0]
        assert assay.encode(text) == [1.0, 0.0, 0.0]
    assert temperature.encode("40.0")[1] == 0.0 and found.width == 5
    assert TypeAdapter(ConditionColumn).validate_python(temperature.facts()) == temperature
    assert [words.partition(" of ")[0] for words in found.remarks(rows)] == ["temperature: 1", "assay: 1"]
    assert not list(CONDITIONS.remarks([("20.0", "b")]))
    warned = found.add_warnings(["Far."] * 3, [("", ""), ("NA", "b"), ("20.0", "b")])
    assert warned[2] == "Far." and warned[1].startswith("Far. The condition temperature is missing and read as 25,")
    counts = missing_conditions([*warned, warned[0]], ["", "", "", "unreadable"])
    assert {text.split()[2]: count for text, count in counts.items()} == {"temperature": 2, "assay": 1}
    with pytest.raises(InputError, match="pH is blank in all training rows"):
        Conditions.of(("pH",), [("",)] * 3)


def test_true_and_false_may_have_other_capitals():
    conditions = Conditions.of(("serum", "assay"), [("TRUE", "A"), ("FALSE", "a")])
    assert conditions.encode(("True", "a")) == [0, 1, 0, 1]
    assert conditions.encode(("false", "A")) == [1, 0, 1, 0]
    with pytest.raises(InputError, match="serum is 'yes': the model knows FALSE, TRUE"):
        conditions.encode(("yes", "A"))


def solvents(*names: str, tested: str) -> LabelledTable:
    rows = [LabelledRow(number, "C", [1.0], "train", conditions=(name,)) for number, name in enumerate(names, 1)]
    rows.append(replace(rows[0], number=len(rows) + 1, split="test", conditions=(tested,)))
    return LabelledTable(rows, structures=Structures(MoleculeStructure("C", "", key) for key in "abcde"[: len(rows)]))


def test_test_rows_under_conditions_of_no_training_row_are_skipped():
    table = solvents("water", "DMSO", tested="hexane")
    table.rows.append(replace(table.rows[-1], number=4, conditions=("DMSO",)))
    duplicates = [Duplicate("d; hexane", (2, 2), ()), Duplicate("c; DMSO", (1, 3), ())]
    table = replace(
        table, structures=Structures(MoleculeStructure("C", "", key) for key in "abcd"), duplicates=duplicates
    )
    found = scorable(TableOptions("in.csv", ("y",), feature_columns=("solvent",)), table)
    assert [row.number for row in found.rows] == [1, 2, 4] and found.structures.keys == ["a", "b", "d"]
    assert found.skipped == [(3, "C", "solvent is 'hexane': the model knows DMSO, water")]
    assert found.duplicates == [Duplicate("c; DMSO", (1, 2), ())], "the places of the rows that are left"


def test_a_table_without_test_rows_under_known_conditions_is_refused_before_training():
    options = TableOptions("in.csv", ("y",), feature_columns=("solvent",))
    with pytest.raises(InputError, match="row 4: solvent is 'hexane': the model knows DMSO, water"):
        scorable(options, solvents("water", "DMSO", tested="hexane"))


def test_a_model_asks_for_its_conditions():
    with pytest.raises(InputError, match="the model needs the conditions temperature, assay"):
        CONDITIONS.encode_all([(), ()])
    assert CONDITIONS.encode_all([])[0].shape == (0, 3)
    assert Conditions().encode_all([])[0].shape == (0, 0) and Conditions().width == 0


def test_conditions_that_are_given_are_those_of_all_molecules():
    some = CONDITIONS.under({"temperature": 25})
    assert some.asked == ("assay",) and some.encode(("a",)) == CONDITIONS.encode(("25.0", "a"))
    every = some.under({"assay": " b "})
    assert every.asked == () and every.encode(()) == CONDITIONS.encode(("25.0", "b"))
    np.testing.assert_array_equal(every.encode_all([(), ()])[0], CONDITIONS.encode_all([("25.0", "b")] * 2)[0])
    for given, message in (
        ({"pH": "7"}, "pH is not a condition of the model, which reads temperature, assay"),
        ({"assay": "c"}, "assay is 'c': the model knows a, b"),
        ({"temperature": "1,000"}, "temperature is '1,000', which may be 1000 or 1.000"),
        ({"temperature": "warm"}, "temperature is 'warm', not a number"),
    ):
        with pytest.raises(InputError, match=message):
            CONDITIONS.under(given)


def test_a_number_outside_the_range_of_the_training_rows_is_warned_of():
    warning = "The condition temperature is 40.5; training rows have 20 to 40."
    rows = [("20.0", "a"), ("40.0", "c"), ("", "a"), ("40.5", "b")]
    assert CONDITIONS.add_warnings([""] * 4, rows) == ["", "", "", warning]
    assert CONDITIONS.under({"temperature": "40.5"}).add_warnings(["far."], [("b",)]) == [f"far. {warning}"]
    assert column_of("pH", ["7.0", "7.0"]).warning("-7.4") == "The condition pH is -7.4; training rows have only 7."
    assert ConditionColumn("pH", (), 7.0, 1.0).warning("99") == ""  # of a model of an earlier version


@pytest.mark.parametrize(
    ("texts", "choices"),
    [
        (["37.0", "25.0"] * 2, ["25", "37"]),
        (["37.0", "25.0"], []),  # one row each
        ([str(number) for number in range(10)] * 2, list("0123456789")),
        ([str(number) for number in range(11)] * 2, []),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_few_values_are_a_choice(texts, choices):
    column = column_of("T", texts)
    assert column.choices == choices
    assert TypeAdapter(ConditionColumn).validate_python(column.facts()) == column


def test_a_column_with_one_word_that_is_no_number_has_words():
    assert column_of("assay", ["1.0", "2.0", "x"]).words == ("1.0", "2.0", "x")
    for texts in (["37 C", "25 C"], ["pH 7.4", ""], ["24h", "1.5 h"], ["10", "10 uM"]):
        with pytest.raises(InputError, match=f"numbers with units, such as '{texts[0]}'"):
            column_of("T", texts)
    assert column_of("cells", ["3T3", "2D", ""]).words == ("", "2D", "3T3")
    assert column_of("pH", ["7.0", "7.0"]) == ConditionColumn("pH", (), 7.0, 1.0, 7.0, 7.0, values=(7.0,))
    with pytest.raises(InputError, match=f"--feature-columns lab has {MOST_WORDS + 1} distinct words"):
        column_of("lab", [f"lab {number}" for number in range(MOST_WORDS + 1)])


def test_similarities_under_conditions_by_hand():
    found = with_conditions(np.array([[[1.0, 0.5]]]), np.array([[0.5, 1.0]]))
    np.testing.assert_allclose(found, [[[2 * 1.5 / 4, 1.5 * 2 / 4]]])
