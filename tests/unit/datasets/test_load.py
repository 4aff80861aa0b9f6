import pytest

from graphormer_sepnorm.datasets.benchmarks import DATASETS, sample_table
from graphormer_sepnorm.datasets.load import find_dataset, load_split
from graphormer_sepnorm.errors import InputError


def test_a_name_is_found_in_the_registry():
    assert all(find_dataset(name) is dataset for name, dataset in DATASETS.items())


@pytest.mark.parametrize("name", ["qm9", "", "no/such/table.csv"])
def test_an_unknown_name_is_refused_with_those_that_are_known(name):
    with pytest.raises(InputError, match=f"unknown dataset '{name}', choose one of {', '.join(DATASETS)}"):
        find_dataset(name)


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="unknown split 'valid', choose one of train, val, test"):
        load_split("sample", "valid", ())


def test_a_split_of_the_sample_has_its_molecules_in_order():
    table = sample_table()
    expected = table[table.split == "val"].penalized_logp.to_numpy("float32")
    assert load_split("sample", "val", ()).y[:, 0].tolist() == expected.tolist()
