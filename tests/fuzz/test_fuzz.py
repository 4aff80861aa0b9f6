"""A bounded number of mutated SMILES and tables; the modules beside this one try any number."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import forms, inchi, smiles, tables
from tests.fuzz.edits import KINDS, NUMBERS, SIZES


def edits(tokens: tuple) -> st.SearchStrategy[list]:
    edit = st.tuples(st.sampled_from(KINDS), st.floats(0, 1), st.sampled_from(SIZES), st.sampled_from(tokens))
    return st.lists(edit, max_size=max(NUMBERS))


@pytest.mark.slow
@given(st.sampled_from(smiles.seeds()), edits(smiles.TOKENS))
def test_mutated_smiles_are_read_or_refused(text, changes):
    smiles.read_or_refused(smiles.edited(text, changes))


@pytest.mark.slow
@given(st.sampled_from(smiles.seeds()), edits(smiles.TOKENS))
def test_mutated_molecules_are_read_from_their_inchis(text, changes):
    inchi.written_as_inchi(smiles.edited(text, changes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.slow
@given(kind=st.sampled_from([*tables.FORMATS]), changes=edits(tables.TOKENS))
def test_good_records_survive_a_damaged_one(folder, kind, changes):
    tables.damage_record(folder, kind, changes)


@pytest.mark.slow
@given(kind=st.sampled_from([*tables.FORMATS, "csv.gz", "sdf.gz"]), changes=edits(tables.TOKENS))
def test_damaged_tables_are_read_or_refused(folder, kind, changes):
    tables.damage_file(folder, kind, changes)


@pytest.mark.slow
@pytest.mark.parametrize("count", [50, pytest.param(5000, marks=pytest.mark.nightly)])
def test_all_forms_of_a_molecule_are_one_family(count):
    for number in range(count):
        assert forms.try_one(random.Random(number)) == "one family"


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_read_as_they_were_written_or_refused(folder, seed):
    tables.read_written_labels(folder, random.Random(seed))
