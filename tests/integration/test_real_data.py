"""The real benchmarks: skipped where ``GRAPHORMER_SEPNORM_ROOT`` does not name a folder that holds them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.datasets import ZINC

from graphormer_sepnorm import Graphormer, slim
from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.config import TrainConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.datasets.benchmarks import DATASETS, load_molhiv, load_split, pyg_classes
from graphormer_sepnorm.encodings.shipped import Centrality
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import dataset_config
from graphormer_sepnorm.runs.info import describe_model
from graphormer_sepnorm.runs.zoo import PRETRAINED, resolve_model, shipped_models
from graphormer_sepnorm.training import experiment

pytestmark = pytest.mark.real

SIZES = {"zinc-subset": (10_000, 1_000, 1_000), "ogbg-molhiv": (32_901, 4_113, 4_113)}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_splits_have_their_sizes_and_fit_the_vocabulary(root, name):
    featurizer = FEATURIZERS[DATASETS[name].featurizer]
    for split, size in zip(SPLITS, SIZES[name], strict=True):
        data = load_split(name, split, (Centrality(),), root)
        assert len(data) == size
        batch = data.batch(range(len(data)))
        assert (batch.x.max(dim=0).values < torch.tensor(featurizer.atom_sizes)).all()
        assert batch.y.shape == (size, len(DATASETS[name].task.targets)) and not batch.y.isnan().any()


@pytest.mark.slow
def test_molhiv_has_its_positives(root):
    molecules, index = load_molhiv(root)
    assert [int(molecules.y[index[split]].sum()) for split in SPLITS] == [1232, 81, 130]


@pytest.mark.slow
def test_the_store_holds_what_pyg_gives(root):
    """Graph by graph, the prepared arrays equal the transform of PyG's own graphs."""
    with torch.serialization.safe_globals(pyg_classes()):
        dataset = ZINC(str(root / "ZINC"), subset=True, split="val")
    featurizer = FEATURIZERS["zinc"]
    model = Graphormer(slim(featurizer.atom_sizes, featurizer.bond_sizes))
    stored = load_split("zinc-subset", "val", model.config.encodings, root)
    transform = model.transform()
    for molecule in (0, 1, 500, 999):
        graph, batch = transform(dataset[molecule].clone()), stored.batch([molecule])
        assert torch.equal(batch.x.long(), graph.x)
        assert torch.equal(batch.y.view(-1), graph.y)
        for name, array in batch.arrays.items():
            assert torch.equal(array, graph[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zinc-subset", pytest.param("ogbg-molhiv", marks=pytest.mark.nightly)])
def test_trains_to_a_test_score(root, name, tmp_path, monkeypatch):
    """One short epoch on a slice of the training split; the whole test split is scored."""
    config = dataset_config(name, TrainConfig(epochs=1, seed=1))
    config = replace(config, model=replace(config.model, layers=2, width=16, ffn_width=16))
    whole = experiment.load_split

    def some(name, split, encodings, root):
        data = whole(name, split, encodings, root)
        return type(data)(data.shards[:1]) if split == "train" else data

    monkeypatch.setattr(experiment, "load_split", some)
    result = experiment.train_run(config, tmp_path / "run", root)
    assert result["n"] == SIZES[name][2]
    assert np.isfinite(result["value"])
    assert json.loads((tmp_path / "run" / "test.json").read_text()) == result


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name if name == "zinc-subset" else pytest.param(name, marks=pytest.mark.nightly)
        for name in sorted(shipped_models())
        if name not in PRETRAINED
    ],
)
def test_shipped_weights_recompute_their_published_score(root, name):
    if name == "zinc":
        try:
            load_split("zinc", "test", (), root)
        except InputError as error:
            pytest.skip(str(error))
    published = describe_model(resolve_model(name))["test"]
    assert experiment.evaluate_run(resolve_model(name), "test", root)["value"] == pytest.approx(published, abs=5e-5)
