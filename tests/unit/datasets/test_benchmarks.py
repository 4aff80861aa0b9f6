"""The contract of a named dataset, over all of them."""

import csv
import functools
import gzip
import importlib.util
import io
import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.chem.properties import penalized_logp
from graphormer_sepnorm.dataset import Dataset
from graphormer_sepnorm.datasets.benchmarks import (
    DATASETS,
    TensorUnpickler,
    explained_download,
    link_files,
    load_split,
    read_alone,
    read_sample,
    sample_source,
    sample_table,
    state_of_files,
    tensors_only,
)
from graphormer_sepnorm.encodings.shipped import Centrality
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tasks import METRICS
from tests.robustness.test_hostile_files import Planted

CARDS = (Path(__file__).parents[3] / "data" / "README.md").read_text()
SHIPPED = [name for name in DATASETS if name != "tiny"]  # tests/robustness/tiny_run.py adds its own


@pytest.mark.parametrize("name", SHIPPED)
def test_a_dataset_is_complete_and_has_a_card(name, tmp_path):
    dataset = DATASETS[name]
    assert dataset.featurizer in FEATURIZERS and dataset.task.metric in METRICS
    assert dataset.task.mean == dataset.task.std == (), "the scale is that of the training split"
    assert isinstance(dataset.source(tmp_path), str), "without data too"
    assert f"| `{name}` |" in CARDS


@pytest.mark.slow
def test_the_sample_is_read_with_its_targets():
    table = sample_table()
    molecules = read_sample("val", Path("no root"))
    assert len(molecules) == 500
    assert molecules.y[:, 0].tolist() == table[table.split == "val"].penalized_logp.to_numpy("float32").tolist()
    assert len(sample_source(Path("no root"))) == 64


def test_the_source_changes_when_a_raw_file_does(tmp_path):
    source = functools.partial(state_of_files, ("SET/raw",))
    assert source(tmp_path) == ""
    raw = tmp_path / "SET" / "raw"
    raw.mkdir(parents=True)
    for name, content in (("b", "12"), ("a", "345")):
        (raw / name).write_text(content)
        os.utime(raw / name, ns=(7, 7))
    assert source(tmp_path) == "a:3:7 b:2:7"
    os.utime(raw / "b", ns=(8, 8))
    assert source(tmp_path) == "a:3:7 b:2:8"


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.evaluate])
def test_the_evaluator_of_a_benchmark_gives_what_its_metric_gives(name):
    dataset, rng = DATASETS[name], np.random.default_rng(0)
    y = rng.normal(size=(50, 1)) if dataset.task.kind == "regression" else rng.integers(0, 2, (50, 1)).astype(float)
    prediction = rng.random((50, 1))
    assert dataset.evaluate(y, prediction) == pytest.approx(METRICS[dataset.task.metric](y, prediction), rel=1e-12)


DATA = Path(__file__).parents[3] / "data"
SPEC = importlib.util.spec_from_file_location("make_sample", DATA / "make_sample.py")
make_sample = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_sample)


@pytest.mark.slow
def test_targets_belong_to_the_molecules():
    part = pd.read_csv(make_sample.SAMPLE).sample(200, random_state=0)
    assert [penalized_logp(smiles) for smiles in part.smiles] == pytest.approx(list(part.penalized_logp), abs=1e-5)


@pytest.mark.slow
def test_generator_repeats_the_first_rows():
    with gzip.open(make_sample.SAMPLE, "rt", newline="") as file:
        stored = [tuple(row) for row in itertools.islice(csv.reader(file), 1, 101)]
    assert list(itertools.islice(make_sample.sample_rows(), 100)) == stored


@pytest.mark.slow
def test_a_changed_encoding_is_computed_again():
    """As by a notebook whose cell is edited and run again: the fields stay the same, the cached arrays do not."""

    def with_degree(code: str) -> Tensor:
        names = {"Centrality": Centrality, "__name__": "own"}
        exec(f"class Own(Centrality):\n    def precompute(self, graphs):\n        {code}", names)
        return load_split("sample", "val", (names["Own"](),)).batch([0]).arrays["degree"]

    once = "return {name: array for name, array in super(Own, self).precompute(graphs).items()}"
    twice = once.replace("array for", "2 * array for")
    first = with_degree(once)
    assert (with_degree(twice) == 2 * first).all()
    assert (with_degree(once) == first).all()


@pytest.fixture
def root(tmp_path):
    for name in ("raw/a.txt", "processed/b.pt", "deep/er/c"):
        path = tmp_path / "root" / "SET" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "root"


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_processed_files_are_left_out_and_existing_files_are_kept(root, tmp_path):
    (tmp_path / "mirror/SET/raw").mkdir(parents=True)
    (tmp_path / "mirror/SET/raw/a.txt").write_text("own")
    link_files(root, tmp_path / "mirror")
    assert files(tmp_path / "mirror") == ["SET/deep/er/c", "SET/raw/a.txt"]
    assert (tmp_path / "mirror/SET/raw/a.txt").read_text() == "own"


@pytest.mark.parametrize("failure", [OSError("no network"), RuntimeError("bad zip"), EOFError(), SystemExit()])
def test_a_failed_download_gives_a_sentence_and_leaves_no_root(tmp_path, failure):
    with (
        pytest.raises(InputError, match=r"SET is not in .* could not be downloaded"),
        explained_download("SET", tmp_path / "new", "set"),
    ):
        (tmp_path / "new" / "set").mkdir(parents=True)
        raise failure
    assert not (tmp_path / "new").exists()


def test_loaders_do_not_write_to_the_root_and_damaged_files_are_replaced(root):
    seen = []

    def read(split, folder):
        seen.append((split, files(folder)))
        (folder / "SET" / "written").write_text("by the loader")
        if len(seen) == 1:
            raise RuntimeError("damaged")
        return "molecules"

    dataset = Dataset(task=None, featurizer="zinc", read=read, source=lambda folder: "", folder="SET")
    assert read_alone("SET", dataset, "val", root, "source") == "molecules"
    assert seen == [("val", ["SET/deep/er/c", "SET/raw/a.txt"])] * 2
    assert files(root) == ["SET/deep/er/c", "SET/processed/b.pt", "SET/raw/a.txt"]


def test_a_problem_of_the_data_names_the_users_root(root):
    """Not the mirror in the cache, from which the molecules are read."""

    def read(split, place):
        raise InputError(f"the root holds no {split} molecules")

    dataset = Dataset(DATASETS["sample"].task, "zinc", read, lambda root: "state", folder="SET")
    with pytest.raises(InputError, match=f"^{root}: the root holds no val molecules$"):
        read_alone("set", dataset, "val", root, "state")


def test_lists_and_dicts_of_tensors_are_read():
    content = [{"atom": torch.tensor([1, 2]), "name": "a"}, {"bond": torch.eye(2)}]
    found = TensorUnpickler(io.BytesIO(pickle.dumps(content))).load()
    assert found[0]["atom"].tolist() == [1, 2] and found[0]["name"] == "a"
    assert found[1]["bond"].tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("place", [lambda evil: evil, lambda evil: [{"atom": evil}]])
def test_other_objects_are_refused_and_never_executed(tmp_path, place):
    with pytest.raises(pickle.UnpicklingError, match="is not allowed in a dataset"):
        TensorUnpickler(io.BytesIO(pickle.dumps(place(Planted(tmp_path / "made"))))).load()
    assert not (tmp_path / "made").exists()


def test_torch_reads_only_pygs_data_within_the_context(tmp_path):
    torch.save(Data(x=torch.ones(2, 1)), tmp_path / "data.pt")
    torch.save({"data": Planted(tmp_path / "made")}, tmp_path / "evil.pt")
    with tensors_only():
        assert torch.load(tmp_path / "data.pt").x.tolist() == [[1.0], [1.0]]
        for options in ({}, {"weights_only": None}):
            with pytest.raises(pickle.UnpicklingError):
                torch.load(tmp_path / "evil.pt", **options)
    assert not (tmp_path / "made").exists()
