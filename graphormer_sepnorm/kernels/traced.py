"""The compiled CPU operations as PyTorch operators, which `torch.compile` and `torch.export` treat as single nodes.

Each has a fake implementation, which computes only shapes, and a gradient. The number of all scores depends on the
sizes of the molecules, not only on shapes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op, get_ctx

from graphormer_sepnorm.kernels import cpu, cpu_attention

Maybe = Tensor | None


@custom_op("graphormer_sepnorm::embedding_sum", mutates_args=(), device_types="cpu")
def embedding_sum(index: Tensor, table: Tensor) -> Tensor:
    return cpu.embedding_forward(index.contiguous(), table.contiguous())


@embedding_sum.register_fake
def _(index: Tensor, table: Tensor) -> Tensor:
    return table.new_empty(index.shape[0], table.shape[1])


@custom_op("graphormer_sepnorm::embedding_sum_backward", mutates_args=(), device_types="cpu")
def embedding_sum_backward(gradient: Tensor, index: Tensor, entries: int) -> Tensor:
    return cpu.embedding_backward(gradient, index.contiguous(), entries).contiguous()


@embedding_sum_backward.register_fake
def _(gradient: Tensor, index: Tensor, entries: int) -> Tensor:
    return gradient.new_empty(entries, gradient.shape[1])


def _keep_index(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    index, table = inputs
    ctx.save_for_backward(index)
    ctx.entries = table.shape[0]


def _embedding_gradient(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
    return None, embedding_sum_backward(gradient, *ctx.saved_tensors, ctx.entries)


embedding_sum.register_autograd(_embedding_gradient, setup_context=_keep_index)


@custom_op("graphormer_sepnorm::lay_out", mutates_args=(), device_types="cpu")
def lay_out(pairs: Tensor, cls: Tensor, ptr: Tensor) -> Tensor:
    layout = cpu_attention.ScoreLayout.from_ptr(ptr, cls.shape[0])
    return cpu_attention.lay_out_forward(pairs.contiguous(), cls.contiguous(), layout)


@lay_out.register_fake
def _(pairs: Tensor, cls: Tensor, ptr: Tensor) -> Tensor:
    return pairs.new_empty(get_ctx().new_dynamic_size())


@custom_op("graphormer_sepnorm::lay_out_backward", mutates_args=(), device_types="cpu")
def lay_out_backward(gradient: Tensor, ptr: Tensor, pairs: int, heads: int) -> tuple[Tensor, Tensor]:
    return cpu_attention.lay_out_backward(gradient.contiguous(), cpu_attention.ScoreLayout.from_ptr(ptr, heads))


@lay_out_backward.register_fake
def _(gradient: Tensor, ptr: Tensor, pairs: int, heads: int) -> tuple[Tensor, Tensor]:
    return gradient.new_empty(pairs, heads), gradient.new_empty(heads)


def _keep_ptr(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    pairs, _, ptr = inputs
    ctx.save_for_backward(ptr)
    ctx.shape = pairs.shape


def _lay_out_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
    return *lay_out_backward(gradient, *ctx.saved_tensors, *ctx.shape), None


lay_out.register_autograd(_lay_out_gradient, setup_context=_keep_ptr)


@custom_op("graphormer_sepnorm::attention", mutates_args=(), device_types="cpu")
def attention(
    rows: Tensor, cls: Maybe, bias: Tensor, factor: Maybe, ptr: Tensor, seed: Maybe, heads: int, dropout: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The output of `cpu_attention.attention_forward`, with a seed [] of the dropout, None without."""
    layout, drawn = cpu_attention.ScoreLayout.from_ptr(ptr, heads), 0 if seed is None else int(seed)
    cls = None if cls is None else cls.contiguous()
    return cpu_attention.attention_forward(rows.contiguous(), cls, bias, factor, layout, dropout, drawn)


@attention.register_fake
def _(rows, cls, bias, factor, ptr, seed, heads, dropout):
    out = rows.new_empty(rows.shape[0], rows.shape[1] // 3) if cls is None else cls.new_empty(cls.shape)
    return out, bias.new_empty(bias.shape), bias.new_empty(get_ctx().new_dynamic_size())


@custom_op("graphormer_sepnorm::attention_backward", mutates_args=(), device_types="cpu")
def attention_backward(
    out_gradient: Tensor,
    rows: Tensor,
    cls: Maybe,
    factor: Maybe,
    out: Tensor,
    scores: Tensor,
    inverses: Tensor,
    ptr: Tensor,
    heads: int,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of rows, cls, bias and factor; empty for cls and factor if they are None."""
    layout = cpu_attention.ScoreLayout.from_ptr(ptr, heads)
    of_bias, of_factor = torch.zeros_like(scores), None if factor is None else torch.zeros_like(scores)
    saved = (rows.contiguous(), None if cls is None else cls.contiguous(), factor, out, scores, inverses)
    of_rows, of_cls = cpu_attention.attention_backward(out_gradient, saved, (of_bias, of_factor), layout, dropout)
    nothing = scores.new_empty(0)
    return of_rows, nothing if of_cls is None else of_cls, of_bias, nothing.clone() if of_factor is None else of_factor


@attention_backward.register_fake
def _(out_gradient, rows, cls, factor, out, scores, inverses, ptr, heads, dropout):
    of_cls = scores.new_empty(0 if cls is None else cls.shape)
    of_factor = scores.new_empty(0 if factor is None else scores.shape)
    return rows.new_empty(rows.shape), of_cls, scores.new_empty(scores.shape), of_factor


def _keep_weights(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor, Tensor]) -> None:
    rows, cls, _, factor, ptr, _, ctx.heads, ctx.dropout = inputs
    out, scores, inverses = output
    ctx.mark_non_differentiable(scores, inverses)
    ctx.save_for_backward(rows, cls, factor, out, scores, inverses, ptr)


def _attention_gradient(ctx: Any, out_gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    cls, factor = ctx.saved_tensors[1:3]
    gradients = attention_backward(out_gradient, *ctx.saved_tensors, ctx.heads, ctx.dropout)
    of_rows, of_cls, of_bias, of_factor = gradients
    return of_rows, None if cls is None else of_cls, of_bias, None if factor is None else of_factor, *[None] * 4


attention.register_autograd(_attention_gradient, setup_context=_keep_weights)


class TracedAttention:
    """The operators applied to the packed rows of one batch."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        self.ptr, self.heads = ptr, cls_bias.shape[0]
        self.bias = lay_out(pair_bias, cls_bias, ptr)
        self.factor = None if pair_factor is None else lay_out(pair_factor, torch.ones_like(cls_bias), ptr)

    def __call__(self, qkv: Tensor, dropout: float, cls: Tensor | None = None) -> Tensor:
        seed = torch.randint(2**63 - 1, ()) if dropout > 0 else None
        return attention(qkv, cls, self.bias, self.factor, self.ptr, seed, self.heads, dropout)[0]

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        return self(kv, dropout, q)


make_attention = TracedAttention
