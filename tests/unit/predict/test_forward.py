from copy import deepcopy

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import Config
from graphormer_sepnorm.datasets.benchmarks import load_split
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.predict.forward import (
    DEVICE_PAIRS,
    batches_for,
    compute_dataset,
    embed_dataset,
    embedding_of,
    predict_dataset,
    prediction_of,
    rows_of_molecules,
    share_trunks,
    size_sorted_batches,
)
from graphormer_sepnorm.runs import checkpoint
from graphormer_sepnorm.runs.zoo import resolve_model
from graphormer_sepnorm.system.device import choose, computing
from graphormer_sepnorm.tasks import make_task
from tests.tiny import tiny_model


@pytest.mark.slow
def test_rows_are_in_the_order_of_the_dataset():
    model, config = tiny_model(featurizer="zinc")
    dataset = load_split("sample", "val", config.model.encodings)
    predictions, embeddings = predict_dataset(model, dataset, make_task(config.task)), embed_dataset(model, dataset)
    assert predictions.shape == (500, 1) and embeddings.shape == (500, 16)
    for molecule in (0, 123, 499):
        alone = dataset.batch([molecule])
        assert predictions[molecule, 0] == pytest.approx(model(alone).item(), abs=1e-4)
        np.testing.assert_allclose(embeddings[molecule], model.encode(alone)[0][0].detach().numpy(), atol=1e-4)


@pytest.mark.slow
def test_bfloat16_predicts_the_same_to_its_eight_bits():
    """Independent roundings of what products read and give, a dozen in each block, add up as a random walk does.

    One is 2^-8 / sqrt(6) of a value on average, and the largest of 1,000 sums 3.3 of their standard deviations. It was
    0.029 where predictions spread by 2.2.
    """
    model, config, _ = checkpoint.load_model(resolve_model("zinc-subset"))
    task = make_task(config.task)
    splits = [load_split("sample", split, config.model.encodings) for split in ("val", "test")]
    exact = np.concatenate([predict_dataset(model, split, task) for split in splits])
    with computing(choose("cpu", "bfloat16")):
        rounded = np.concatenate([predict_dataset(model, split, task) for split in splits])
    assert len(exact) == 1000
    tolerance = 3.3 * 2**-8 * (12 * config.model.layers / 6) ** 0.5 * exact.std()
    assert 0 < np.abs(rounded - exact).max() < tolerance


def test_batches_of_a_gpu_are_large_and_hold_few_large_molecules():
    sizes = np.array([1000] * 3 + [20] * 2000)
    batches = size_sorted_batches(sizes, is_gpu=True)
    assert sorted(np.concatenate(batches).tolist()) == list(range(2003))
    assert len(batches[0]) > 600
    assert all(np.sum(sizes[batch] ** 2) <= 2 * DEVICE_PAIRS for batch in batches)


def twins() -> tuple[Network, Network, Config]:
    """Two models with equal trunks, whose other weights differ."""
    one, config = tiny_model(featurizer="zinc")
    other = deepcopy(one)
    with torch.no_grad():
        for weights in (*other.blocks.parameters(), *other.head.parameters()):
            weights += 0.1
    return one, other, config


@pytest.mark.slow
def test_a_trunk_of_equal_weights_is_computed_once_and_changes_no_output(monkeypatch):
    one, other, config = twins()
    dataset, task = load_split("sample", "val", config.model.encodings), make_task(config.task)
    outputs = [prediction_of(one, task), embedding_of(other)]
    expected = [compute_dataset(output, dataset) for output in outputs]
    computed, run_trunk = [], Network.run_trunk
    monkeypatch.setattr(Network, "run_trunk", lambda model, batch: computed.append(model) or run_trunk(model, batch))
    batches = list(batches_for(one, dataset))
    rows_of_molecules(outputs, dataset, batches)
    assert len(computed) == 2 * len(batches)
    computed.clear()
    share_trunks([one, other])
    found = rows_of_molecules(outputs, dataset, batches)
    assert computed == [one] * len(batches)
    for values, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("name", ["embedding.table", "cls_bias", "encodings.1.bias"])
def test_a_trunk_with_another_weight_is_not_shared(name):
    one, other, _ = twins()
    with torch.no_grad():
        other.state_dict()[name].view(-1)[0] += 1e-3
    share_trunks([one, other])
    assert other.local_blocks is not one.local_blocks and other.embedding is not one.embedding
