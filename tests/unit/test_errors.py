import pickle

import pytest

from graphormer_sepnorm.errors import InputError, did_you_mean, known


def test_it_is_a_value_error_and_can_be_pickled():
    error = pickle.loads(pickle.dumps(InputError("a sentence")))
    assert type(error) is InputError and isinstance(error, ValueError) and str(error) == "a sentence"


def test_options_follow_the_sentence_in_the_words_of_the_reader():
    error = pickle.loads(pickle.dumps(InputError("name the columns", "target_columns", "task")))
    assert str(error) == "name the columns; see target_columns, task" and error.sentence == "name the columns"
    assert error.with_options(str.upper) == "name the columns; see TARGET_COLUMNS, TASK"


def test_an_unknown_name_is_refused_with_the_choice_that_is_most_like_it():
    assert known("optimizer", "muon", ["adamw", "muon"]) == "muon"
    with pytest.raises(InputError, match=r"^unknown optimizer 'adam', choose one of adamw, muon; did you mean 'adamw'"):
        known("optimizer", "adam", ["adamw", "muon"])
    with pytest.raises(InputError, match=r"^unknown optimizer 'x', choose one of adamw, muon$"):
        known("optimizer", "x", ["adamw", "muon"])


def test_a_name_that_lacks_its_unit_is_completed():
    columns = ["SMILES", "log (1)", "logS (mol/L)"]
    assert did_you_mean("logs", columns) == did_you_mean("logS", columns) == "; did you mean 'logS (mol/L)'?"
    assert did_you_mean("lo", columns) == did_you_mean("mol", columns) == ""
