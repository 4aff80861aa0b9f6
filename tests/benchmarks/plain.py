"""A plain Graphormer as one would write it first: batches padded to the largest molecule, PyTorch's own layers.

Pre-norm with LayerNorm, the paper's three encodings. What it is given is prepared like ours; padding it is part of
making its batches. Axis letters: B molecules, n atoms of the largest, L = n + 1 tokens, H heads, D width, K hops.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, gelu, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence

from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.graphs import GraphBatch


def padded(batch: GraphBatch) -> tuple[dict[str, Tensor], Tensor]:
    """The arrays of a packed batch of one column of atom features, padded, and its targets [B, tasks]."""
    sizes = batch.ptr.diff().tolist()
    longest = max(sizes)
    atoms = {"x": batch.x.long() + 1, "degree": batch.arrays["degree"].long() + 1}
    arrays = {name: pad_sequence(list(rows.split(sizes)), batch_first=True) for name, rows in atoms.items()}
    pairs = [size * size for size in sizes]
    for name in ("spd", "path_bonds"):
        found = batch.arrays[name].long()
        out = found.new_zeros(len(sizes), longest, longest, *found.shape[1:])
        for place, (size, rows) in enumerate(zip(sizes, found.split(pairs), strict=True)):
            out[place, :size, :size] = rows.view(size, size, *rows.shape[1:])
        arrays[name] = out
    arrays["real"] = torch.arange(longest) < torch.tensor(sizes).unsqueeze(1)
    return arrays, batch.y


class Layer(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        width = config.width
        self.config = config
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, config.ffn_width), nn.Linear(config.ffn_width, width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """x [B, L, D], bias [B, H, L, L]."""
        shape = (*x.shape[:2], 3, self.config.heads, -1)
        q, k, v = self.qkv(self.norms[0](x)).view(shape).permute(2, 0, 3, 1, 4)
        dropped = self.config.attention_dropout if self.training else 0.0
        read = scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropped)
        x = x + self.drop(self.out(read.transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(gelu(self.up(self.norms[1](x)))))

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.config.dropout, self.training)


class Plain(nn.Module):
    def __init__(self, config: ModelConfig, max_degree: int = 15):
        super().__init__()
        self.atom = nn.Embedding(sum(config.atom_sizes) + 1, config.width, padding_idx=0)
        self.degree = nn.Embedding(max_degree + 2, config.width, padding_idx=0)
        self.cls, self.cls_bias = nn.Parameter(torch.zeros(1, 1, config.width)), nn.Parameter(torch.zeros(config.heads))
        self.spatial = nn.Embedding(256, config.heads)
        hops = config.encodings[2].max_hops
        self.bond = nn.Embedding(config.num_bond_types + 1, config.heads, padding_idx=0)
        self.hop = nn.Parameter(torch.randn(hops, config.heads, config.heads) * 0.02)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(config.width), nn.Linear(config.width, config.num_tasks)

    def forward(self, arrays: dict[str, Tensor]) -> Tensor:
        """Predictions [B, tasks]."""
        atoms = self.atom(arrays["x"]).sum(dim=2) + self.degree(arrays["degree"]).sum(dim=2)
        x = torch.cat([self.cls.expand(len(atoms), -1, -1), atoms], dim=1)
        bonds = arrays["path_bonds"]
        steps = (bonds > 0).sum(dim=-1, keepdim=True).clamp(min=1)
        paths = torch.einsum("bijkh,khg->bijg", self.bond(bonds), self.hop) / steps
        between = (self.spatial(arrays["spd"]) + paths).permute(0, 3, 1, 2)
        length = x.shape[1]
        bias = self.cls_bias.view(1, -1, 1, 1).expand(len(x), -1, length, length).clone()
        bias[:, :, 1:, 1:] = between
        real = nn.functional.pad(arrays["real"], (1, 0), value=True)
        bias = bias.masked_fill(~real[:, None, None, :], float("-inf"))
        for layer in self.layers:
            x = layer(x, bias)
        return self.head(self.norm(x[:, 0]))
