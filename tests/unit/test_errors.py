import pickle

from graphormer_sepnorm.errors import InputError


def test_it_is_a_value_error_and_can_be_pickled():
    error = pickle.loads(pickle.dumps(InputError("a sentence")))
    assert type(error) is InputError and isinstance(error, ValueError) and str(error) == "a sentence"
