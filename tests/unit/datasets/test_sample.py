import csv
import gzip
import importlib.util
import itertools
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem

from graphormer_sepnorm.chem.properties import penalized_logp
from graphormer_sepnorm.chem.smiles import read_smiles

DATA = Path(__file__).parents[3] / "data"
SPEC = importlib.util.spec_from_file_location("make_sample", DATA / "make_sample.py")
make_sample = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_sample)


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    return pd.read_csv(make_sample.SAMPLE)


@pytest.fixture(scope="module")
def mols(sample) -> list[Chem.Mol]:
    return [read_smiles(smiles) for smiles in sample.smiles]


def stored_rows() -> list[tuple[str, ...]]:
    with gzip.open(make_sample.SAMPLE, "rt", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def test_no_molecule_is_in_the_sample_twice_even_as_a_stereoisomer(mols):
    assert len({Chem.MolToSmiles(mol, isomericSmiles=False) for mol in mols}) == len(mols)


def test_molecules_are_canonical_and_whole(sample, mols):
    assert [Chem.MolToSmiles(mol) for mol in mols] == list(sample.smiles)
    assert not sample.smiles.str.contains(r"[.*]").any()


def test_targets_belong_to_the_molecules(sample):
    part = sample.sample(200, random_state=0)
    assert [penalized_logp(smiles) for smiles in part.smiles] == pytest.approx(list(part.penalized_logp), abs=1e-5)


def test_generator_repeats_the_first_rows():
    assert list(itertools.islice(make_sample.sample_rows(), 100)) == stored_rows()[1:101]


@pytest.mark.nightly
def test_generator_repeats_the_file(tmp_path):
    path = tmp_path / "sample.csv.gz"
    make_sample.write_sample(path)
    written = path.read_bytes()
    assert gzip.decompress(written) == gzip.decompress(make_sample.SAMPLE.read_bytes())
    assert written[4:8] == bytes(4)
