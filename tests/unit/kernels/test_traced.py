"""The model with torch.compile and torch.export."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.encodings.shipped import Resistance, Rings
from graphormer_sepnorm.graphs import GraphBatch, pack_data
from graphormer_sepnorm.model import Network
from tests.conftest import random_graph

SIZES = [[3, 7, 20], [5, 9, 1, 18]]


@pytest.fixture(params=["paper", "factors"])
def model(request, config) -> Network:
    if request.param == "factors":
        encodings = (*config.encodings, Resistance(multiplies=True), Rings())
        config = replace(config, encodings=encodings, bias_hidden=8, norm_position="pre", messages=True)
    torch.manual_seed(0)
    return Network(config).eval()


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()


def make_batch(config: ModelConfig, sizes: list[int]) -> GraphBatch:
    graphs = pack_data([random_graph(n, seed) for seed, n in enumerate(sizes)], config.bond_sizes)
    return in_memory(graphs, config.encodings).batch(np.arange(len(graphs)))


class FromTensors(nn.Module):
    """The model as a function of tensors, for export."""

    def __init__(self, model: Network):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, ptr: Tensor, edge_index: Tensor, bond: Tensor, arrays: dict[str, Tensor]) -> Tensor:
        return self.model(GraphBatch(x, ptr, edge_index, bond, arrays))


def tensors_of(batch: GraphBatch) -> tuple:
    return batch.x, batch.ptr, batch.edge_index, batch.bond, batch.arrays


@pytest.mark.parametrize("backend", [pytest.param("eager", marks=pytest.mark.nightly), "aot_eager"])
@pytest.mark.slow
@torch.no_grad()
def test_compiled_in_one_graph_the_model_predicts_the_same(model, backend):
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for sizes in SIZES:
        batch = make_batch(model.config, sizes)
        torch.testing.assert_close(compiled(batch), model(batch), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_compiled_in_one_graph_the_model_learns_the_same(model):
    model = Network(model.config).train()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for sizes in SIZES:
        batch = make_batch(model.config, sizes)
        outs, gradients = [], []
        for function in (model, compiled):
            outs.append(function(batch))
            gradients.append(torch.autograd.grad((outs[-1] ** 2).sum(), learning, allow_unused=True))
        torch.testing.assert_close(*outs, rtol=1e-4, atol=1e-5)
        for eager, traced_gradient in zip(*gradients, strict=True):
            torch.testing.assert_close(eager, traced_gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("strict", [pytest.param(True, marks=pytest.mark.nightly), False])
@pytest.mark.slow
def test_exported_saved_and_loaded_the_model_predicts_the_same_for_other_sizes(model, strict):
    any_length = {0: torch.export.Dim.DYNAMIC}
    first = make_batch(model.config, SIZES[0])
    shapes = (any_length, any_length, {1: any_length[0]}, any_length, dict.fromkeys(first.arrays, any_length))
    program = torch.export.export(FromTensors(model), tensors_of(first), dynamic_shapes=shapes, strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for sizes in SIZES:
        batch = make_batch(model.config, sizes)
        torch.testing.assert_close(loaded(*tensors_of(batch)), model(batch), rtol=1e-4, atol=1e-5)
