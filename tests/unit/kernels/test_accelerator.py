"""Batches of a fixed shape, padding among them, give what packed ones give; nothing waits for a value."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphormer_sepnorm import kernels
from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.datasets.on_device import DeviceDataset, smallest_shape
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.encodings import ENCODINGS
from graphormer_sepnorm.encodings.resistance import Resistance
from graphormer_sepnorm.graphs import GraphBatch, Shape, pack_data
from graphormer_sepnorm.kernels import accelerator
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.layers.readouts import READOUTS
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.recipes import RECIPES
from tests.conftest import random_graph

FACTORS = Resistance(multiplies=True)
EVERYTHING = {
    "encodings": (*(kind() for name, kind in ENCODINGS.items() if name != FACTORS.name), FACTORS),
    "messages": True,
    "degree_scaling": True,
    "bias_hidden": 8,
    "readout": "cls+sum",
    "norm": "sepnorm-batchnorm",
    "layers": 3,
    "attention_layers": 2,
    "atom_values": True,
}
VARIANTS = {
    **{f"encoding {name}": {"encodings": (kind(),)} for name, kind in ENCODINGS.items()},
    **{f"norm {norm}": {"norm": norm} for norm in NORMS},
    **{f"readout {readout}": {"readout": readout} for readout in READOUTS},
    "no encodings": {"encodings": ()},
    "factors": {"encodings": (FACTORS,)},
    "pre-norm": {"norm_position": "pre", "norm": "sepnorm-layernorm-batchnorm"},
    "everything": EVERYTHING,
}
SIZES = (1, 2, 7, 12, 37)


def architecture(name: str, config: ModelConfig) -> ModelConfig:
    """A variant of the small model, or a recipe of three layers on its vocabularies, without dropout."""
    if name in VARIANTS:
        return replace(config, **VARIANTS[name])
    made = RECIPES[name].architecture(config.atom_sizes, config.bond_sizes, 1)
    small = replace(made, layers=3, width=32, ffn_width=32, heads=4, attention_layers=made.attention_layers and 2)
    return replace(small, dropout=0.0, attention_dropout=0.0)


def make_model(config: ModelConfig) -> Network:
    torch.manual_seed(0)
    model = Network(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def both_batches(config: ModelConfig) -> tuple[GraphBatch, GraphBatch]:
    """Some molecules packed, and the same in a batch of a fixed shape with padding of every kind."""
    graphs = pack_data([random_graph(n, seed) for seed, n in enumerate(SIZES)], config.bond_sizes)
    data = in_memory(graphs, config.encodings)
    moved = DeviceDataset(data, "cpu")
    order = np.array([3, 0, 4, 1, 2])
    exact = smallest_shape(moved.sizes)
    shape = Shape(len(SIZES) + 2, exact.atoms + 3, exact.pairs + 5, exact.edges + 7, exact.length + 8)
    return data.batch(order), moved.batch(moved.numbers(order, shape.molecules), shape)


def on_accelerator(monkeypatch) -> None:
    """Lets the CPU compute as a GPU would."""
    monkeypatch.setattr(kernels, "on_accelerator", lambda tensor: True)


def learn(model: Network, batch: GraphBatch, device: str = "cpu") -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Predictions in training, all gradients, and the buffers afterwards."""
    model.zero_grad()
    out = model(batch)[: len(SIZES)]
    (out * torch.linspace(-1, 1, len(SIZES), device=device).unsqueeze(1)).sum().backward()
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return out.detach(), torch.cat([g.flatten() for g in gradients]), dict(model.named_buffers())


def assert_near(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    assert (found - expected).norm() <= tolerance * expected.norm().clamp(min=1e-12)


@pytest.mark.parametrize("name", [*VARIANTS, *RECIPES])
def test_a_padded_batch_learns_what_the_packed_one_learns(config, monkeypatch, name):
    config = architecture(name, config)
    packed, padded = both_batches(config)
    kind = torch.float64 if config.norm == "sepnorm" and config.norm_position == "pre" else torch.float32
    expected = learn(make_model(config).to(kind).train(), packed)
    on_accelerator(monkeypatch)
    found = learn(make_model(config).to(kind).train(), padded)
    for a, b in zip(found[:2], expected[:2], strict=True):
        assert_near(a, b)
    for buffer, of_packed in expected[2].items():
        torch.testing.assert_close(found[2][buffer], of_packed, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["everything", "norm sepnorm", "readout mean"])
def test_a_padded_batch_predicts_and_embeds_what_the_packed_one_does(config, monkeypatch, name):
    config = architecture(name, config)
    model = make_model(config).eval()
    packed, padded = both_batches(config)
    with torch.no_grad():
        expected, (cls, atoms) = model(packed), model.encode(packed)
        on_accelerator(monkeypatch)
        found, (padded_cls, padded_atoms) = model(padded), model.encode(padded)
    assert_near(found[: len(SIZES)], expected)
    assert_near(padded_cls[: len(SIZES)], cls)
    assert_near(padded_atoms[: packed.num_atoms], atoms)


@pytest.mark.parametrize("name", ["everything", "norm sepnorm-layernorm-batchnorm"])
def test_what_padding_holds_changes_nothing(config, name):
    config = architecture(name, config)
    model = make_model(config).train()
    _, padded = both_batches(config)
    atoms, pairs = int(padded.ptr[-1]), int(padded.ptr.diff().square().sum())
    arrays = {
        array: torch.cat([rows[:real], torch.ones_like(rows[real:])])
        for array, rows in padded.arrays.items()
        for real in [atoms if len(rows) == padded.num_atoms else pairs]
    }
    other = replace(padded, x=torch.cat([padded.x[:atoms], torch.full_like(padded.x[atoms:], 3)]), arrays=arrays)
    expected, found = learn(model, padded), learn(model, other)
    assert torch.equal(found[0], expected[0])
    assert_near(found[1], expected[1], 1e-6)


def test_in_bfloat16_a_padded_batch_is_near_the_packed_one_and_its_bias_is_in_that_precision(config, monkeypatch):
    config = architecture("best", config)
    model = make_model(config).eval()
    packed, padded = both_batches(config)
    seen = []
    fused = accelerator.scaled_dot_product_attention

    def look(q, k, v, attn_mask, dropout_p, scale):
        seen.append((q.dtype, attn_mask.dtype, q.shape[-1], attn_mask.stride(-1)))
        return fused(q, k, v, attn_mask=attn_mask, dropout_p=dropout_p, scale=scale)

    monkeypatch.setattr(accelerator, "scaled_dot_product_attention", look)
    with torch.no_grad():
        exact = model(packed)
        on_accelerator(monkeypatch)
        with torch.autocast("cpu", torch.bfloat16):
            found = model(padded)[: len(SIZES)].float()
    assert_near(found, exact, 0.1)
    assert set(seen) == {(torch.bfloat16, torch.bfloat16, 16, 1)}


@pytest.mark.parametrize("most", [2**26, 0], ids=["counts", "rows"])
def test_the_gradient_of_a_table_is_that_of_indexing(monkeypatch, most):
    monkeypatch.setattr(accelerator, "MOST_COUNTS", most)
    index = torch.tensor([[0, 2], [2, 2], [1, 3], [0, 0]], dtype=torch.uint8)
    tables = [torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(1)] * 2
    weights = torch.randn(4, 3, dtype=torch.float64)
    gradients = []
    for function in (accelerator.embedding_sum, lambda i, t: functional.embedding(i.long(), t).sum(1)):
        out = function(index, tables[0])
        gradients.append(torch.autograd.grad((out * weights).sum(), tables[0])[0])
    torch.testing.assert_close(gradients[0], gradients[1])
    assert torch.autograd.gradcheck(lambda table: accelerator.embedding_sum(index, table), tables[0])


def test_places_by_hand():
    """Molecules of two atoms, of none and of one, padding of two atoms and three pairs."""
    ptr, shape = torch.tensor([0, 2, 2, 3]), Shape(3, 5, 8, 0, 4)
    atoms = accelerator.places_of_atoms(ptr, shape)
    assert atoms.filled.view(3, 3).tolist() == [[True, True, False], [False] * 3, [True, False, False]]
    assert atoms.row.view(3, 3)[atoms.filled.view(3, 3)].tolist() == [0, 1, 2]
    assert atoms.real.tolist() == [True, True, True, False, False]
    assert atoms.place[:3].tolist() == [0, 1, 6]
    rows = accelerator.places_of_rows(ptr, shape)
    assert rows.row[rows.filled].tolist() == [0, 3, 4, 1, 2, 5]
    assert rows.place[rows.real].tolist() == [0, 4, 8, 1, 2, 9]
    pairs = accelerator.places_of_pairs(ptr, shape)
    assert pairs.filled.nonzero().flatten().tolist() == pairs.place[:5].tolist() == [0, 1, 3, 4, 18]
    assert pairs.row[pairs.filled].tolist() == [0, 1, 2, 3, 4]
    assert pairs.real.tolist() == [True] * 5 + [False] * 3


def test_moved_rows_come_back_with_their_gradients():
    ptr, shape = torch.tensor([0, 2, 2, 3]), Shape(3, 5, 8, 0, 4)
    places = accelerator.places_of_atoms(ptr, shape)
    rows = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.equal(places.collect(places.spread(rows))[:3], rows[:3])
    kept = places.filled.unsqueeze(1)

    def around(rows: Tensor) -> Tensor:
        return places.collect(places.spread(rows).masked_fill(~kept, 0) ** 2)[:3]

    assert torch.autograd.gradcheck(around, rows)
    (gradient,) = torch.autograd.grad(around(rows).sum(), rows)
    assert gradient[3:].abs().max() == 0
