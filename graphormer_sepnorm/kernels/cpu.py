"""The compiled CPU operations as autograd functions. Importing this module imports Numba."""

import torch
from torch import Tensor

from graphormer_sepnorm.kernels.cpu_attention import ScoreLayout, attention, lay_out
from graphormer_sepnorm.kernels.cpu_rows import embedding_sum

__all__ = ["FusedAttention", "embedding_sum", "make_attention"]


class FusedAttention:
    """Compiled attention over packed rows, on the CPU in float32."""

    def __init__(self, ptr: Tensor, pair_bias: Tensor, cls_bias: Tensor, pair_factor: Tensor | None = None):
        self.layout = ScoreLayout.from_ptr(ptr, len(cls_bias))
        self.bias = lay_out(pair_bias, cls_bias, self.layout)
        self.factor = None
        if pair_factor is not None:
            self.factor = lay_out(pair_factor, torch.ones_like(cls_bias), self.layout)

    def __call__(self, qkv: Tensor, dropout: float) -> Tensor:
        return attention(qkv, self.bias, self.layout, dropout, self.factor)

    def of_cls(self, q: Tensor, kv: Tensor, dropout: float) -> Tensor:
        return attention(kv, self.bias, self.layout, dropout, self.factor, cls=q)


make_attention = FusedAttention
