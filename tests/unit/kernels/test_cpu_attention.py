"""The compiled CPU kernels against plain PyTorch in float64, written with loops over molecules."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import embedding

from graphormer_sepnorm.kernels.cpu import embedding_sum
from graphormer_sepnorm.kernels.cpu_attention import FusedAttention

SIZES = {"mixed": [1, 17, 2, 16, 15, 33, 7, 1], "one atom": [1], "large": [3, 200, 31], "one": [22]}


@pytest.fixture(autouse=True)
def _seed_and_threads():
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def assert_close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5, summands: Tensor | None = None) -> None:
    """Compares relative to the size of the expected values, or of their summands, which may cancel."""
    scale = (expected if summands is None else summands).abs().max().clamp(min=1e-3).item()
    torch.testing.assert_close(actual.double(), expected.double(), rtol=0, atol=tolerance * scale)


class Case:
    """Random inputs of attention, with leaves that collect gradients."""

    def __init__(self, sizes: list[int], heads: int, d: int, layers: int = 1, with_factor: bool = False):
        self.sizes, self.ptr, self.heads = sizes, torch.tensor([0, *sizes]).cumsum(0), heads
        tokens, pairs = len(sizes) + sum(sizes), sum(n * n for n in sizes)
        self.qkv = [torch.randn(tokens, 3 * heads * d).requires_grad_() for _ in range(layers)]
        self.pair_bias = torch.randn(pairs, heads).requires_grad_()
        self.cls_bias = torch.randn(heads).requires_grad_()
        self.pair_factor = torch.randn(pairs, heads).requires_grad_() if with_factor else None
        self.leaves = [*self.qkv, self.pair_bias, self.cls_bias, *([self.pair_factor] if with_factor else [])]
        self.weights = [torch.randn(tokens, heads * d) for _ in range(layers)]

    def attend(self) -> FusedAttention:
        return FusedAttention(self.ptr, self.pair_bias, self.cls_bias, self.pair_factor)

    def run(self, dropout: float = 0.0) -> list[Tensor]:
        attend = self.attend()
        return [attend(qkv, dropout) for qkv in self.qkv]

    def loss(self, outs: list[Tensor]) -> Tensor:
        return sum((out * weight).sum() for out, weight in zip(outs, self.weights, strict=True))


def tokens_of(case: Case, molecule: int) -> Tensor:
    first = len(case.sizes) + int(case.ptr[molecule])
    return torch.tensor([molecule, *range(first, first + case.sizes[molecule])])


def reference(case: Case, leaves: list[Tensor], masks: list[list[Tensor]] | None = None) -> list[Tensor]:
    """Attention molecule by molecule; `masks` [layer][molecule] [H, L, L] are factors of the probabilities."""
    layers, (pair_bias, cls_bias, *factors) = leaves[: len(case.qkv)], leaves[len(case.qkv) :]
    outs = []
    for layer, qkv in enumerate(layers):
        out, first_pair = torch.zeros(len(qkv), qkv.shape[1] // 3, dtype=qkv.dtype), 0
        for molecule, n in enumerate(case.sizes):
            rows = tokens_of(case, molecule)
            q, k, v = qkv[rows].unflatten(1, (3, case.heads, -1)).permute(1, 2, 0, 3)  # [H, L, d]
            bias = cls_bias[:, None, None].repeat(1, n + 1, n + 1)
            bias[:, 1:, 1:] = pair_bias[first_pair : first_pair + n * n].view(n, n, -1).permute(2, 0, 1)
            scores = q @ k.mT / math.sqrt(q.shape[2]) + bias
            probabilities = scores.softmax(-1) * (1 if masks is None else masks[layer][molecule])
            for pair_factor in factors:
                factor = torch.ones_like(bias)
                factor[:, 1:, 1:] = pair_factor[first_pair : first_pair + n * n].view(n, n, -1).permute(2, 0, 1)
                probabilities = probabilities * factor
            out[rows] = (probabilities @ v).transpose(0, 1).flatten(1)
            first_pair += n * n
        outs.append(out)
    return outs


def reference_gradients(case: Case, masks: list[list[Tensor]] | None = None) -> tuple[list[Tensor], list[Tensor]]:
    leaves = [leaf.detach().double().requires_grad_() for leaf in case.leaves]
    outs = reference(case, leaves, masks)
    return outs, torch.autograd.grad(case.loss(outs), leaves)


def assert_equals_reference(
    case: Case, outs: list[Tensor], masks: list[list[Tensor]] | None = None, tolerance: float = 1e-5
) -> None:
    """Outputs and all gradients; those of the bias of the CLS are sums of differences of products."""
    expected_outs, expected = reference_gradients(case, masks)
    for out, wanted in zip(outs, expected_outs, strict=True):
        assert_close(out, wanted, tolerance)
    products = expected_outs[0].detach() * case.weights[0]
    found = torch.autograd.grad(case.loss(outs), case.leaves)
    for leaf, actual, wanted in zip(case.leaves, found, expected, strict=True):
        assert_close(actual, wanted, tolerance, products if leaf is case.cls_bias else None)


def kept_factors(case: Case, dropout: float, seed: int) -> list[Tensor]:
    """The factors 0 or 1 / (1 - dropout) of one attention call, [H, L, L] for each molecule.

    With equal scores and unit vectors as values, an output is a factor divided by L; each call yields d keys.
    """
    d = case.qkv[0].shape[1] // 3 // case.heads
    zero = Case(case.sizes, case.heads, d)
    zero.pair_bias, zero.cls_bias = torch.zeros_like(case.pair_bias), torch.zeros_like(case.cls_bias)
    factors = [torch.zeros(case.heads, n + 1, n + 1) for n in case.sizes]
    for first in range(0, max(case.sizes) + 1, d):
        qkv = torch.zeros_like(case.qkv[0])
        values = qkv.view(-1, 3, case.heads, d)[:, 2]
        for molecule, n in enumerate(case.sizes):
            for column, row in enumerate(tokens_of(case, molecule)[first : first + d]):
                values[row, :, column] = n + 1
        torch.manual_seed(seed)
        out = zero.attend()(qkv, dropout).view(-1, case.heads, d)
        for molecule in range(len(case.sizes)):
            keys = factors[molecule][:, :, first : first + d]
            keys.copy_(out[tokens_of(case, molecule), :, : keys.shape[2]].transpose(0, 1))
    return factors


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(("heads", "d"), [(8, 10), (3, 8), (2, 16), (1, 24), (2, 32), (4, 1)])
@pytest.mark.parametrize("with_factor", [False, True])
def test_attention_matches_reference(sizes, heads, d, with_factor):
    case = Case(sizes, heads, d, with_factor=with_factor)
    assert_equals_reference(case, case.run())


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("with_factor", [False, True])
def test_the_cls_reads_the_same_with_and_without_the_atoms(dropout, with_factor):
    case = Case(SIZES["mixed"], 2, 10, with_factor=with_factor)
    (qkv,), width, batch = case.qkv, 20, len(case.sizes)
    attend = case.attend()
    torch.manual_seed(5)
    whole = attend(qkv, dropout)[:batch]
    torch.manual_seed(5)
    alone = attend.of_cls(qkv[:batch, :width], qkv[:, width:], dropout)
    assert torch.equal(alone, whole)
    weights = case.weights[0][:batch]
    losses = ((out * weights).sum() for out in (alone, whole))
    found, wanted = (torch.autograd.grad(loss, case.leaves, retain_graph=True) for loss in losses)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("with_factor", [False, True])
def test_an_output_without_gradients_is_the_same(sizes, with_factor):
    case = Case(sizes, 4, 10, with_factor=with_factor)
    torch.manual_seed(5)
    (expected,) = case.run(0.3)
    for leaf in case.leaves:
        leaf.requires_grad_(False)
    torch.manual_seed(5)
    assert torch.equal(*case.run(0.3), expected)


@pytest.mark.parametrize("dropout", [0.1, 0.6])
@pytest.mark.parametrize("with_factor", [False, True])
def test_dropout_matches_reference_with_the_same_mask(dropout, with_factor):
    case = Case(SIZES["mixed"], 4, 10, with_factor=with_factor)
    torch.manual_seed(5)
    outs = case.run(dropout)
    assert_equals_reference(case, outs, [kept_factors(case, dropout, 5)])


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_dropout_keeps_the_right_share_independently(dropout):
    case = Case([60, 25, 60], 8, 16)
    first, second = (kept_factors(case, dropout, seed) for seed in (1, 2))
    kept = torch.cat([factor.flatten() for factor in first])
    assert kept.max().item() == pytest.approx(1 / (1 - dropout), rel=1e-5)
    error = 5 * math.sqrt(dropout * (1 - dropout) / len(kept))
    assert (kept > 0).float().mean().item() == pytest.approx(1 - dropout, abs=error)
    large = first[0]
    pairs = {
        "call": (large, second[0]),
        "molecule": (large, first[2]),
        "head": (large[:-1], large[1:]),
        "query": (large[:, :-1], large[:, 1:]),
        "key": (large[:, :, :-1], large[:, :, 1:]),
    }
    for name, (one, other) in pairs.items():
        correlation = torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1].item()
        assert abs(correlation) < 5 / math.sqrt(one.numel()), name


def test_dropout_follows_the_generator():
    case = Case(SIZES["mixed"], 2, 10)
    torch.manual_seed(3)
    (first,), (second,) = case.run(0.3), case.run(0.3)
    torch.manual_seed(3)
    (again,) = case.run(0.3)
    state = torch.get_rng_state()
    case.run(0.0)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(state, torch.get_rng_state())


def test_bias_and_factor_shared_by_layers_get_the_sum():
    case = Case(SIZES["mixed"], 2, 10, layers=3, with_factor=True)
    assert_equals_reference(case, case.run())


def test_bias_gradient_under_repeated_and_partial_backward():
    case = Case(SIZES["mixed"], 2, 10, layers=2)
    _, expected = reference_gradients(case)
    outs = case.run()
    loss = case.loss(outs)
    torch.autograd.grad(loss, case.qkv, retain_graph=True)
    for _ in range(2):
        assert_close(torch.autograd.grad(loss, case.pair_bias, retain_graph=True)[0], expected[2])
    (only_first,) = torch.autograd.grad((outs[0] * case.weights[0]).sum(), case.cls_bias, retain_graph=True)
    (only_second,) = torch.autograd.grad((outs[1] * case.weights[1]).sum(), case.cls_bias, retain_graph=True)
    assert_close(only_first + only_second, expected[3])
    loss.backward()
    loss_again = case.loss(case.run())
    loss_again.backward()
    assert_close(case.pair_bias.grad, 2 * expected[2])


def test_inputs_without_gradient():
    case = Case(SIZES["mixed"], 2, 10)
    _, expected = reference_gradients(case)
    case.pair_bias.requires_grad_(False)
    case.cls_bias.requires_grad_(False)
    assert_close(torch.autograd.grad(case.loss(case.run()), case.qkv)[0], expected[0])
    case.qkv[0].requires_grad_(False)
    case.cls_bias.requires_grad_(True)
    assert_close(torch.autograd.grad(case.loss(case.run()), case.cls_bias)[0], expected[2])


@pytest.mark.slow
@pytest.mark.parametrize("index_type", [torch.uint8, torch.int32, torch.int64])
@pytest.mark.parametrize(("rows", "columns", "width"), [(1500, 9, 80), (700, 1, 8), (65, 6, 19), (3, 2, 16)])
def test_embedding_sum(index_type, rows, columns, width):
    table = torch.randn(23, width).requires_grad_()
    index = torch.randint(0, 23, (rows, columns)).to(index_type)
    factor = torch.randn(rows, width)
    exact = table.detach().double().requires_grad_()
    expected = embedding(index.long(), exact).sum(1)
    actual = embedding_sum(index, table)
    assert_close(actual, expected)
    (wanted,) = torch.autograd.grad((expected * factor).sum(), exact)
    assert_close(torch.autograd.grad((actual * factor).sum(), table)[0], wanted)


@pytest.mark.parametrize("entry", [-1, 4])
def test_embedding_sum_refuses_indices_outside_the_table(entry):
    with pytest.raises(IndexError, match=r"0 \.\. 3"):
        embedding_sum(torch.tensor([[0], [entry]]), torch.randn(4, 8))


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_threads():
    case = Case([30, 1, 12, 25, 18, 40, 9], 4, 10, layers=2)
    table, index = torch.randn(11, 8).requires_grad_(), torch.randint(0, 11, (5000, 3))
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        outs = [*case.run(0.2), embedding_sum(index, table)]
        loss = case.loss(outs[:2]) + sum((out**3).sum() for out in outs[2:])
        results.append([*outs, *torch.autograd.grad(loss, [*case.leaves, table])])
    for single, double, triple in zip(*results, strict=True):
        assert torch.equal(single, double)
        assert torch.equal(single, triple)


def test_inputs_are_checked():
    case = Case([3, 4], 2, 10)
    attend, qkv = case.attend(), case.qkv[0].detach()
    with pytest.raises(TypeError, match=r"rows must be a torch\.float32 CPU tensor"):
        attend(qkv.double(), 0.0)
    with pytest.raises(ValueError, match="rows must have the shape"):
        attend(qkv[1:], 0.0)
    with pytest.raises(ValueError, match="pairs must have the shape"):
        FusedAttention(case.ptr, case.pair_bias, case.cls_bias, Case([3, 5], 2, 10).pair_bias)
    with pytest.raises(ValueError, match="at least one atom"):
        FusedAttention(torch.tensor([0, 3, 3]), case.pair_bias, case.cls_bias)


def test_non_contiguous_inputs():
    case = Case(SIZES["mixed"], 2, 10)
    (expected,) = case.run()
    strided = case.qkv[0].t().contiguous().t()
    assert torch.equal(case.attend()(strided, 0.0), expected)


@pytest.mark.slow
def test_nan_stays_in_its_molecule_and_is_not_hidden():
    case = Case([4, 6], 1, 10)
    with torch.no_grad():
        case.qkv[0][1, :20] = float("nan")
    (out,) = case.run(0.2)
    assert out[tokens_of(case, 1)].isnan().all()
    assert out[tokens_of(case, 0)].isfinite().all()


def test_bias_of_minus_infinity_hides_a_key():
    case = Case([5], 1, 10)
    with torch.no_grad():
        case.pair_bias.view(5, 5)[:, 2] = float("-inf")
    (out,) = case.run()
    case.qkv[0].data[3, 20:] += 1
    assert torch.equal(case.run()[0][1:], out[1:])


def test_large_scores_do_not_overflow():
    case = Case(SIZES["mixed"], 2, 10)
    with torch.no_grad():
        case.qkv[0].mul_(30)
    assert_equals_reference(case, case.run(), tolerance=1e-3)
