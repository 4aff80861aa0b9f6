import csv
import gzip
import importlib.util
import itertools
from pathlib import Path

import pandas as pd
import pytest

from graphormer_sepnorm.chem.properties import penalized_logp

DATA = Path(__file__).parents[3] / "data"
SPEC = importlib.util.spec_from_file_location("make_sample", DATA / "make_sample.py")
make_sample = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_sample)


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    return pd.read_csv(make_sample.SAMPLE)


def stored_rows() -> list[tuple[str, ...]]:
    with gzip.open(make_sample.SAMPLE, "rt", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


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
