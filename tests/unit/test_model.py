import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm as normal
from torch_geometric.data import Batch, Data

from graphormer_sepnorm import Graphormer, kernels
from graphormer_sepnorm.chem.features import read_graphs
from graphormer_sepnorm.datasets.store import in_memory
from graphormer_sepnorm.encodings import ENCODINGS
from graphormer_sepnorm.encodings.shipped import Resistance, Spatial
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.kernels import make_attention
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.layers.readouts import READOUTS
from graphormer_sepnorm.model import AtomValues, Network, Structure, gelu
from tests.reference import graphormer
from tests.tiny import tiny_model

IN_BLOCKS = {"messages": True, "degree_scaling": True}
LOCAL = {"layers": 3, "messages": True, "attention_layers": 2, "atom_values": True}


def make_model(config, seed=0):
    torch.manual_seed(seed)
    model = Graphormer(config)
    for parameter in model.parameters():  # away from zero biases and unit norms, so that every term counts
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def collate(model, graphs):
    transform = model.transform()
    return Batch.from_data_list([transform(graph.clone()) for graph in graphs])


def as_reference(graph: Data):
    bonds = {(i, j): int(b) + 1 for (i, j), b in zip(graph.edge_index.t().tolist(), graph.edge_attr, strict=True)}
    return graph.x.view(-1).tolist(), bonds


def renumber(graph: Data, order) -> Data:
    place = torch.empty(graph.num_nodes, dtype=torch.long)
    place[order] = torch.arange(graph.num_nodes)
    shuffled = torch.randperm(graph.num_edges)
    return Data(
        x=graph.x[order],
        edge_index=place[graph.edge_index][:, shuffled],
        edge_attr=graph.edge_attr[shuffled],
        num_nodes=graph.num_nodes,
    )


def relative_error(a, b):
    return ((a - b).norm() / b.norm().clamp(min=1e-12)).item()


def gradients(model):
    """Concatenated gradients of all parameters, zeros where the prediction does not depend on one."""
    found = (torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())
    return torch.cat([gradient.double().reshape(-1) for gradient in found])


@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_dropout_acts_on_the_output_of_each_sublayer_only_in_training(config, norm_position):
    """With a dropout of nearly 1, rows pass through the residuals unchanged."""
    config = replace(config, norm="sharenorm", norm_position=norm_position, dropout=1 - 1e-6)
    block, rows = make_model(config).blocks[0], torch.randn(5, config.width)
    attend = make_attention(torch.tensor([0, 4]), torch.zeros(16, 4), torch.zeros(4))
    no_bonds = torch.empty(2, 0, dtype=torch.long)
    structure = Structure(1, attend, no_bonds, no_bonds[0], torch.zeros(4, dtype=torch.long))
    untouched = rows if norm_position == "pre" else block.ffn_norm.packed(block.attention_norm.packed(rows, 1), 1)
    torch.testing.assert_close(block.train()(rows, 5, structure), untouched)
    assert not torch.allclose(block.eval()(rows, 5, structure), untouched)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize(
    "norm", ["sepnorm", *(pytest.param(norm, marks=pytest.mark.slow) for norm in ("sepnorm-layernorm", "sharenorm"))]
)
@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize(
    "further",
    [
        pytest.param({}, id="paper"),
        pytest.param(LOCAL | IN_BLOCKS, id="local-degrees"),
        *(
            pytest.param(fields, id="-".join(fields), marks=pytest.mark.slow)
            for fields in ({"messages": True}, {"degree_scaling": True}, IN_BLOCKS, {"atom_values": True}, LOCAL)
        ),
    ],
)
def test_equals_the_reference_forward_and_gradients(config, graphs, norm, norm_position, further, dtype, tolerance):
    """In float32 through the compiled operations, in float64 through the plain ones."""
    if (norm, norm_position, dtype) == ("sepnorm", "pre", torch.float32):
        pytest.skip("the first BatchNorm divides the rounding of identical CLS rows by sqrt(eps); float64 checks it")
    config = replace(config, norm=norm, norm_position=norm_position, **further)
    model = make_model(config).to(dtype)
    state = {name: value.detach().double().requires_grad_() for name, value in model.state_dict().items()}
    weights = torch.linspace(-1, 1, len(graphs)).unsqueeze(1)

    out = model(collate(model, graphs))
    (out * weights).sum().backward()
    expected = graphormer(state, [as_reference(graph) for graph in graphs], config)
    (expected * weights).sum().backward()

    assert relative_error(out, expected) < tolerance
    reference = torch.cat([state[name].grad.reshape(-1) for name, _ in model.named_parameters()])
    assert relative_error(gradients(model), reference) < tolerance
    if dtype == torch.float64:
        for name, parameter in model.named_parameters():
            found = 0 if parameter.grad is None else parameter.grad
            assert (found - state[name].grad).abs().max() < tolerance * reference.norm(), name


@pytest.mark.slow
def test_compiled_and_plain_operations_agree(variant, graphs, monkeypatch):
    model = make_model(variant)
    batch = collate(model, graphs)
    compiled = model(batch)
    compiled.sum().backward()
    compiled_gradients = gradients(model)
    model.zero_grad()
    monkeypatch.setattr(kernels, "runs_compiled", lambda tensor: False)
    plain = model(batch)
    plain.sum().backward()
    assert relative_error(compiled, plain) < 1e-5
    assert relative_error(compiled_gradients, gradients(model)) < 1e-5


FACTORS = Resistance(multiplies=True)
EVERYTHING = {
    "encodings": (*(kind() for name, kind in ENCODINGS.items() if name != FACTORS.name), FACTORS),
    **IN_BLOCKS,
    "bias_hidden": 8,
    "readout": "cls+sum",
    "norm": "sepnorm-batchnorm",
}
VARIANTS = {
    "paper": {},
    **{name: {"encodings": (kind(),)} for name, kind in ENCODINGS.items()},
    "factors": {"encodings": (FACTORS,)},
    **{field: {field: True} for field in (*IN_BLOCKS, "atom_values")},
    "local": LOCAL,
    "local-degrees": LOCAL | IN_BLOCKS,
    **{norm: {"norm": norm} for norm in NORMS},
    **{readout: {"readout": readout} for readout in READOUTS},
    "everything": EVERYTHING,
}


@pytest.fixture(params=VARIANTS)
def variant(request, config):
    """The small model with each encoding by itself, each field of the blocks, norm and readout, and all of them."""
    return replace(config, **VARIANTS[request.param])


@pytest.mark.slow
def test_predictions_are_read_from_the_embeddings_of_all_rows(variant, graphs):
    """The last block computes the same CLS rows with and without the other rows."""
    model = make_model(variant)
    batch = model.packed(collate(model, graphs))
    for training in (True, False):
        model.train(training)
        read = model.head(model.readout.read(*model.encode(batch), batch.ptr))
        if model.atom_values is not None:
            read += model.atom_values(model.run_trunk(batch).local_atoms, batch.ptr)
        torch.testing.assert_close(model(batch), read, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model.encode_cls(batch), model.encode(batch)[0], rtol=1e-5, atol=1e-5)


def test_local_blocks_pass_messages_only_to_neighbours(config):
    """In a chain of seven atoms, the last one is five bonds from the second, and six from the first."""
    chain = Data(
        x=torch.tensor([0, 1, 2, 3, 4, 0, 1]),
        edge_index=torch.tensor([[*range(6), *range(1, 7)], [*range(1, 7), *range(6)]]),
        edge_attr=torch.zeros(12, dtype=torch.long),
    )
    other = chain.clone()
    other.x[6] = 3
    model = make_model(replace(config, layers=7, messages=True, attention_layers=2, norm="sepnorm-layernorm")).eval()
    assert (len(model.local_blocks), len(model.blocks), len(model.layers)) == (5, 2, 7)
    batch = model.packed(collate(model, [chain, other]))
    first, second = model.run_trunk(batch).local_atoms.split(7)
    assert [torch.equal(a, b) for a, b in zip(first, second, strict=True)] == [True] + [False] * 6
    cls = model.encode_cls(batch)
    assert not torch.allclose(cls[0], cls[1])


def test_the_last_block_computes_the_rows_that_are_read(config, graphs):
    rows = []
    for readout in ("cls", "cls+sum"):
        model = make_model(replace(config, readout=readout))
        model.blocks[-1].ffn.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
        model(collate(model, graphs))
    assert rows == [len(graphs), len(graphs) + sum(graph.num_nodes for graph in graphs)]


@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_parameters_without_gradient_are_frozen_and_the_others_are_trained(config, graphs, norm_position):
    """Otherwise processes that share gradients, and optimizers, would wait for some."""
    model = make_model(replace(config, norm_position=norm_position, norm="sepnorm-layernorm"))
    model(collate(model, graphs)).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())
    still = {name for name, p in model.named_parameters() if not p.requires_grad}
    unread = {"post": ("attention_norm", "ffn_norm"), "pre": ("ffn_norm",)}[norm_position]
    norms = [f"blocks.1.{name}" for name in unread] + ["last_norm"] * (norm_position == "pre")
    assert still == {f"{norm}.tok_norm_layer.{name}" for norm in norms for name in ("weight", "bias")}


def test_dropout_acts_if_only_the_cls_is_read(config, graphs):
    """With a single layer."""
    model = make_model(replace(config, layers=1, attention_dropout=0.5, norm="sepnorm-layernorm"))
    batch = collate(model, graphs)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(model(batch))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.allclose(outputs[0], outputs[2])
    assert not torch.allclose(outputs[0], model.eval()(batch))


def test_dropout_can_be_turned_off_and_on(config, graphs):
    model = make_model(replace(config, dropout=0.5, attention_dropout=0.5, norm="sepnorm-layernorm"))
    batch = collate(model, graphs)
    still = model.eval()(batch)
    model.train().set_dropout(False)
    torch.testing.assert_close(model(batch), still)
    model.set_dropout(True)
    assert not torch.allclose(model(batch), still)
    for block in model.blocks:
        block.dropout.p = 0.0
    assert not torch.allclose(model(batch), still)  # attention dropout is on, too


@pytest.mark.slow
def test_every_encoding_parameter_learns(variant, graphs):
    model = make_model(variant)
    weights = torch.linspace(-1, 1, len(graphs)).unsqueeze(1)
    (model(collate(model, graphs)) * weights).sum().backward()
    inner = [part for block in model.blocks[:-1] for part in (block.messages, block.degree_scaler) if part]
    read = (model.encodings, model.local_blocks, *inner)
    still = {name for part in read for name, p in part.named_parameters() if p.grad is None or not p.grad.any()}
    assert not still


@pytest.mark.slow
def test_half_precision_is_near_full_precision(config, graphs):
    model = make_model(replace(config, **EVERYTHING)).eval()
    batch = collate(model, graphs)
    full = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(batch)
    half.float().sum().backward()
    assert gradients(model).isfinite().all()
    assert relative_error(half.float(), full) < 0.05


@pytest.mark.slow
def test_renumbering_the_atoms_changes_nothing(variant, graphs):
    config = variant
    model = make_model(config).eval()
    torch.manual_seed(1)
    renumbered = [renumber(graph, torch.randperm(graph.num_nodes)) for graph in graphs]
    torch.testing.assert_close(model(collate(model, graphs)), model(collate(model, renumbered)), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_batch_equals_its_molecules_one_by_one(variant, graphs):
    model = make_model(variant).eval()
    together = model(collate(model, graphs))
    alone = torch.cat([model(collate(model, [graph])) for graph in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)


def test_in_training_molecules_interact_only_through_the_batch_norm_of_the_cls(config, graphs):
    for norm, depends in (("sepnorm", True), ("sepnorm-layernorm", False)):
        model = make_model(replace(config, norm=norm))
        first = model(collate(model, graphs[:4]))[:2]
        second = model(collate(model, [*graphs[:2], *graphs[4:]]))[:2]
        assert torch.allclose(first, second, atol=1e-5) is not depends


def test_one_molecule_in_training_is_refused_before_anything_changes(config, graphs):
    model = make_model(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match="at least 2 molecules"):
        model(collate(model, graphs[:1]))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("edge_index", "edge_attr", "sentence"),
    [
        ([[0, 3], [1, 0]], [[0, 0], [0, 0]], "edge_index of molecule 0 has atom 3, its atoms are numbered from 0 to 2"),
        ([[0, -1], [1, 0]], [[0, 0], [0, 0]], "edge_index of molecule 0 has atom -1"),
        ([[0, 1], [1, 0]], [[0, 0], [1, 6]], "edge_attr of molecule 0 has 6 in column 1, where values are from 0 to 5"),
        ([[0, 1], [1, 0]], [[0.0, 0.5], [0, 0]], "edge_attr must hold integers, it holds torch.float32"),
    ],
)
def test_impossible_bonds_are_refused_before_any_loop(config, edge_index, edge_attr, sentence):
    encodings = tuple(kind() for kind in ENCODINGS.values())
    transform = Graphormer(replace(config, bond_sizes=(3, 6), encodings=encodings)).transform()
    graph = Data(x=torch.zeros(3, 1, dtype=torch.long), edge_index=torch.tensor(edge_index), num_nodes=3)
    graph.edge_attr = torch.tensor(edge_attr)
    with pytest.raises(InputError, match=sentence):
        transform(graph)


@pytest.mark.parametrize(
    ("atom", "sentence"),
    [
        ([5, 0], "x of molecule 1 has 5 in column 0, where values are from 0 to 4"),
        ([0, -1], "x of molecule 1 has -1 in column 1, where values are from 0 to 2"),
        ([0], "x has 1 columns, the model reads 2"),
        ([0.0, 0.5], "x must hold integers, it holds torch.float32"),
    ],
)
def test_atoms_outside_the_vocabularies_are_refused(config, atom, sentence):
    model = make_model(replace(config, atom_sizes=(5, 3)))
    bonds = {"edge_index": torch.empty(2, 0, dtype=torch.long), "edge_attr": torch.empty(0, 1, dtype=torch.long)}
    graphs = [Data(x=torch.tensor([row]), **bonds) for row in ([0] * len(atom), atom)]
    with pytest.raises(InputError, match=sentence):
        model.eval()(collate(model, graphs))


def test_graphs_prepared_for_another_model_are_refused(config, graphs):
    changed = [Spatial(max_distance=3) if each.name == "spatial" else each for each in config.encodings]
    other = replace(config, encodings=tuple(changed))
    batch = collate(make_model(config), graphs)
    make_model(config)(batch)
    with pytest.raises(InputError, match="prepared for a model with other encodings or bond_sizes"):
        make_model(other).packed(batch)
    with pytest.raises(InputError, match="this is a batch: transform each graph"):
        make_model(config).transform()(batch)


def test_a_reset_draws_all_parameters_again(config):
    model = make_model(config).train()
    torch.manual_seed(5)
    model.reset_parameters()
    torch.manual_seed(5)
    fresh = Graphormer(config)
    assert all(torch.equal(value, fresh.state_dict()[name]) for name, value in model.state_dict().items())


def test_a_layer_with_adapters_is_called_in_the_last_block_too(config, graphs):
    """A layer in place of a linear one that adds 1 to its output, though its weight is the same."""
    model = make_model(config).eval()
    batch = collate(model, graphs)

    class Adapted(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer, self.weight, self.bias = layer, layer.weight, layer.bias

        def forward(self, x):
            return self.layer(x) + 1

    before = model(batch)
    attention = model.blocks[-1].attention
    attention.qkv = Adapted(attention.qkv)
    assert not torch.allclose(model(batch), before)


def test_the_head_reads_conditions():
    _, config = tiny_model()
    torch.manual_seed(0)
    model = Network(replace(config.model, conditions=2)).eval()
    graphs = read_graphs("ogb", ["CCO", "CCO", "CCO"])
    values = np.array([[0, 0], [0, 0], [1, 0]], np.float32)
    with torch.no_grad():
        known = in_memory(replace(graphs, conditions=values), config.model.encodings)
        first, same, other = model(known.batch([0, 1, 2])).tolist()
    assert first == pytest.approx(same) and first != pytest.approx(other)


ROWS = torch.tensor([[-2.0, -0.5, 0.0], [0.5, 1.0, 3.0]], dtype=torch.float64, requires_grad=True)


def test_gelu_is_x_times_the_normal_distribution():
    expected = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row] for row in ROWS.tolist()]
    torch.testing.assert_close(gelu(ROWS), torch.tensor(expected, dtype=torch.float64))


def test_the_first_values_are_averaged_and_the_second_summed_over_twenty():
    values = AtomValues(width=1, num_tasks=2)
    with torch.no_grad():
        values.hidden.weight.fill_(2.0)
        values.hidden.bias.fill_(1.0)
        values.out.weight.copy_(torch.tensor([[1.0], [10.0], [100.0], [1000.0]]))
        values.out.bias.copy_(torch.tensor([0.0, 1.0, 0.0, 0.0]))
    atoms = torch.tensor([[-1.0], [0.0], [1.0], [0.5]])
    a, b, c, d = (x * normal.cdf(x) for x in (-1.0, 1.0, 3.0, 2.0))  # GELU of 2 x + 1
    sums, means = a + b + c, (a + b + c) / 3
    expected = [[means + 5 * sums, 10 * means + 1 + 50 * sums], [d + 5 * d, 10 * d + 1 + 50 * d]]
    torch.testing.assert_close(values(atoms, torch.tensor([0, 3, 4])), torch.tensor(expected, dtype=torch.float32))
