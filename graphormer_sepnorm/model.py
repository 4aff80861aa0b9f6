"""Graphormer with separate normalization: embedding, local blocks, blocks, head.

Every token-wise operation works on packed rows [N, D] with N = B + T: the CLS rows of the B molecules, then T atoms.
The norms are in ``layers/norms.py``, attention in ``kernels/dense.py``, encodings in ``encodings/shipped.py``.

Axis letters: B molecules, T atoms, N rows, P ordered atom pairs, E directed bonds, H heads, D width.
"""

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphormer_sepnorm.config import ModelConfig
from graphormer_sepnorm.encodings.base import EncodingSizes, Terms, find_factor
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.graphs import GraphBatch
from graphormer_sepnorm.kernels import Attention, embedding_sum, make_attention
from graphormer_sepnorm.layers.messages import DegreeScaler, make_messages
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.layers.readouts import READOUTS, Readout, sum_atoms

if TYPE_CHECKING:
    from torch_geometric.data import Batch

    from graphormer_sepnorm.encodings.transform import GraphormerTransform

TYPICAL_ATOMS = 20
OfRows = Callable[[Tensor], Tensor]


def gelu(x: Tensor) -> Tensor:
    """GELU without oneDNN, which for a contiguous tensor compiles a program per shape, and so fragments the memory."""
    return functional.gelu(x.mT).mT


class AtomEmbedding(nn.Module):
    """Sum of one learned vector per atom feature."""

    offset: Tensor

    def __init__(self, sizes: tuple[int, ...], width: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(sum(sizes), width))
        offsets = torch.tensor((0, *accumulate(sizes[:-1])))
        self.register_buffer("offset", offsets, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return embedding_sum(x + self.offset, self.table)  # [T, D]


class BiasNetwork(nn.Module):
    """Maps pair features [P, C] to the attention bias [P, H]."""

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))
        self.out = nn.Linear(channels, heads)

    def forward(self, pairs: Tensor) -> Tensor:
        return self.out(gelu(pairs + self.shift))


class SelfAttention(nn.Module):
    """Multi-head attention between all tokens of a molecule: softmax(q k^T / sqrt(d) + b) v, b per head and pair."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = config.attention_dropout

    def forward(self, x: Tensor, num_read: int, attend: Attention) -> Tensor:
        """Attention output of the first ``num_read`` rows (all N or only the B CLS rows) of x [N, D]: [num_read, D]."""
        dropout = self.dropout if self.training else 0.0
        if num_read == x.shape[0] or type(self.qkv) is not nn.Linear:  # such as a layer with adapters
            return self.out(attend(self.qkv(x), dropout)[:num_read])
        parts = [x.shape[1], 2 * x.shape[1]]
        weights, biases = self.qkv.weight.split(parts), self.qkv.bias.split(parts)
        q, kv = (functional.linear(rows, *part) for rows, *part in zip((x[:num_read], x), weights, biases, strict=True))
        return self.out(attend.of_cls(q, kv, dropout))


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.up = nn.Linear(config.width, config.ffn_width)
        self.down = nn.Linear(config.ffn_width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(gelu(self.up(x)))


class Structure(NamedTuple):
    """The structure of the molecules in a batch, shared by all blocks."""

    num_cls: int  # B
    attend: Attention
    edge_index: Tensor  # int64 [2, E], source and target
    bond: Tensor  # int64 [E], from 1
    in_degree: Tensor  # int64 [T]


TRUNK = ("embedding", "encodings", "bias_network", "cls_bias", "local_blocks")
BODY = (*TRUNK, "cls", "blocks", "last_norm")  # all but the head


class Trunk(NamedTuple):
    """The output of the first part of a network, which fine-tuned networks with the same weights there can share."""

    local_atoms: Tensor  # [T, D] from the local blocks
    structure: Structure
    known: dict[tuple[nn.Module, bool], tuple[Tensor, Tensor]]  # output of blocks, and whether they read the atoms


class Residuals(nn.Module):
    """A block of sublayers, each with a residual and a norm: behind their sum ("post"), or before the sublayer."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.pre_norm = config.norm_position == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def add(self, x: Tensor, sublayer: OfRows, norm: OfRows, num_read: int | None = None) -> Tensor:
        """The first ``num_read`` rows of x [N, D], by default all, plus what the sublayer computes for them."""
        read = x if num_read is None else x[:num_read]
        if self.pre_norm:
            return read + self.dropout(sublayer(norm(x)))
        return norm(read + self.dropout(sublayer(x)))


class LocalBlock(Residuals):
    """Messages along bonds and a feed-forward network, each with a residual and a norm; only for atoms, without CLS."""

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        self.messages = make_messages(config.width, config.num_bond_types, config.message_gates)
        self.degree_scaler = DegreeScaler(config.width) if config.degree_scaling else None
        self.messages_norm = NORMS[config.norm](config.width).of_atoms
        self.ffn = FeedForward(config)
        self.ffn_norm = NORMS[config.norm](config.width).of_atoms

    def receive(self, atoms: Tensor, structure: Structure) -> Tensor:
        """The messages that the atoms [T, D] receive from their neighbours."""
        received = self.messages(atoms, structure.edge_index, structure.bond)
        return received if self.degree_scaler is None else self.degree_scaler(received, structure.in_degree)

    def forward(self, atoms: Tensor, structure: Structure) -> Tensor:
        """Maps atoms [T, D] to atoms [T, D]."""
        atoms = self.add(atoms, partial(self.receive, structure=structure), self.messages_norm)
        return self.add(atoms, self.ffn, self.ffn_norm)


class Block(Residuals):
    """Attention and a feed-forward network, each with a residual and a norm.

    If the config asks for them, messages along bonds are added to the attention output of atoms, and the sum is scaled
    by their degrees. If ``atoms_matter`` is False, no prediction reads its atoms: both are left out, and the token norm
    that is not used is frozen.
    """

    def __init__(self, config: ModelConfig, atoms_matter: bool):
        super().__init__(config)
        self.attention = SelfAttention(config)
        messages, scales = config.messages and atoms_matter, config.degree_scaling and atoms_matter
        self.messages = make_messages(config.width, config.num_bond_types, config.message_gates) if messages else None
        self.degree_scaler = DegreeScaler(config.width) if scales else None
        self.attention_norm = NORMS[config.norm](config.width)
        self.ffn = FeedForward(config)
        self.ffn_norm = NORMS[config.norm](config.width)
        if not atoms_matter:  # norms after the attention see only the rows that are read, those of the CLS
            for norm in (self.ffn_norm,) if self.pre_norm else (self.attention_norm, self.ffn_norm):
                norm.freeze_token_norm()

    def receive(self, x: Tensor, num_read: int, structure: Structure) -> Tensor:
        """Output of attention and messages for the first ``num_read`` rows of x [N, D]."""
        received, num_cls = self.attention(x, num_read, structure.attend), structure.num_cls
        if num_read == num_cls or (self.messages is None and self.degree_scaler is None):
            return received
        cls, atoms = received.split([num_cls, x.shape[0] - num_cls])
        if self.messages is not None:
            atoms = atoms + self.messages(x[num_cls:], structure.edge_index, structure.bond)
        if self.degree_scaler is not None:
            atoms = self.degree_scaler(atoms, structure.in_degree)
        return torch.cat([cls, atoms])

    def forward(self, x: Tensor, num_read: int, structure: Structure) -> Tensor:
        """Maps rows [N, D] to the first ``num_read`` output rows: all N, or only the CLS rows."""
        receive = partial(self.receive, num_read=num_read, structure=structure)
        x = self.add(x, receive, partial(self.attention_norm.packed, num_cls=structure.num_cls), num_read)
        return self.add(x, self.ffn, partial(self.ffn_norm.packed, num_cls=structure.num_cls))


class AtomValues(nn.Module):
    """Two values per atom and task, averaged (Ertl and Schuffenhauer, 2009) and summed (Wildman and Crippen, 1999)."""

    def __init__(self, width: int, num_tasks: int):
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 2 * num_tasks)

    def forward(self, atoms: Tensor, ptr: Tensor) -> Tensor:
        """Maps atoms [T, D] and the ptr [B + 1] of a batch to [B, tasks]."""
        averaged, added = sum_atoms(self.out(gelu(self.hidden(atoms))), ptr).chunk(2, dim=1)
        return averaged / ptr.diff().clamp(min=1).unsqueeze(1) + added / TYPICAL_ATOMS


class Network(nn.Module):
    """Graph transformer that reads its prediction from a virtual graph token, the CLS.

    ``predict.pretrained.Graphormer`` adds the methods with which users load the network and predict.

    Sources: Ying et al., NeurIPS 2021 (Graphormer); Chen et al., NeurIPS 2023 (separate normalization).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embedding = AtomEmbedding(config.atom_sizes, config.width)
        self.cls = nn.Parameter(torch.empty(1, config.width))
        self.cls_bias = nn.Parameter(torch.empty(config.heads))  # the bias b from, to and on the CLS
        channels = config.bias_hidden or config.heads
        sizes = EncodingSizes(config.width, channels, config.heads, config.num_bond_types)
        self.encodings = nn.ModuleList(encoding.module(sizes) for encoding in config.encodings)
        self.bias_network = BiasNetwork(channels, config.heads) if config.bias_hidden else nn.Identity()
        self.local_blocks = nn.ModuleList(LocalBlock(config) for _ in range(config.local_layers))
        attending = range(config.local_layers, config.layers)
        self.blocks = nn.ModuleList(Block(config, config.atoms_matter_after(layer)) for layer in attending)
        self.last_norm = NORMS[config.norm](config.width) if config.norm_position == "pre" else None
        self.atoms_matter = config.atoms_matter_after(config.layers - 1)
        if self.last_norm is not None and not self.atoms_matter:
            self.last_norm.freeze_token_norm()
        self.head = nn.Sequential(
            nn.Linear(self.readout.parts * config.width + config.conditions, config.width),
            nn.GELU(),
            nn.Linear(config.width, config.num_tasks),
        )
        self.atom_values = AtomValues(config.width, config.num_tasks) if config.atom_values else None
        self.float()  # regardless of PyTorch's default type
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Linear layers by Xavier's uniform distribution, embeddings by N(0, ``embedding_std``), atom values near 0."""
        tables = (parameter for parameter in self.encodings.parameters() if parameter.ndim > 1)
        for parameter in (self.cls, self.cls_bias, *self.embedding.parameters(), *tables):
            nn.init.normal_(parameter, std=self.config.embedding_std)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        if self.atom_values is not None:  # a prediction starts as that of the head
            nn.init.normal_(self.atom_values.out.weight, std=1e-3)

    @property
    def readout(self) -> Readout:
        return READOUTS[self.config.readout]

    @property
    def layers(self) -> nn.ModuleList:
        """All blocks, from input to output: the local ones, then those with attention."""
        return nn.ModuleList([*self.local_blocks, *self.blocks])

    def set_dropout(self, drops: bool) -> None:
        """Turns dropout in training on, with the rates of the config, or off."""
        for module in self.layers.modules():
            if isinstance(module, SelfAttention):
                module.dropout = self.config.attention_dropout if drops else 0.0
            elif isinstance(module, nn.Dropout):
                module.p = self.config.dropout if drops else 0.0

    def transform(self) -> "GraphormerTransform":
        """The PyG transform that prepares graphs for this model."""
        from graphormer_sepnorm.encodings.transform import GraphormerTransform  # PyG takes seconds to import

        return GraphormerTransform(self.config.encodings, self.config.bond_sizes)

    def encode(self, batch: "Batch | GraphBatch") -> tuple[Tensor, Tensor]:
        """The final embeddings of the CLS tokens [B, D] and of the atoms [T, D].

        With the readout "cls" and norms by token, no prediction reads these atoms: the last block has no messages, and
        training does not change a separate norm of them.

        Args:
            batch: a GraphBatch, or a batch of PyG's DataLoader whose graphs were transformed by ``transform()``.

        Raises:
            ValueError: there is only one molecule in training with a BatchNorm on the CLS; or a PyG batch lacks the
                attributes that the transform adds, or has atom features outside the vocabularies.
        """
        return self.read_trunk(self.run_trunk(self.packed(batch)), True)

    def encode_cls(self, batch: "Batch | GraphBatch", trunk: Trunk | None = None) -> Tensor:
        """The final embeddings of the CLS tokens [B, D] only; raises as ``encode``.

        With the readouts "mean" and "sum", no prediction reads them, so the last block is not trained for them. Do not
        use it in training with a BatchNorm shared by all tokens, whose statistics need the atoms.

        Args:
            batch: as ``encode``.
            trunk: of a model whose trunk has the same weights, for this batch; None: it is computed.
        """
        return self.read_trunk(trunk or self.run_trunk(self.packed(batch)), False)[0]

    def packed(self, batch: "Batch | GraphBatch") -> GraphBatch:
        """Converts a PyG batch to a ``GraphBatch``; raises as ``encode``."""
        if not isinstance(batch, GraphBatch):
            from graphormer_sepnorm.encodings.transform import read_batch  # PyG takes seconds to import

            return read_batch(batch, self.config.encodings, self.config.atom_sizes, self.config.bond_sizes)
        return batch

    def run_trunk(self, batch: GraphBatch) -> Trunk:
        """Runs the part of the network before the first attention; ``TRUNK`` names its modules."""
        terms = [encoding(batch) for encoding in self.encodings]
        bias, factor = self.pair_bias(batch, terms), find_factor(terms)
        attend = make_attention(batch.ptr, bias, self.cls_bias, factor, batch.padding)
        structure = Structure(batch.num_graphs, attend, batch.edge_index, batch.bond, batch.in_degree)
        return Trunk(self.run_local_blocks(self.embed_atoms(batch, terms), structure), structure, {})

    def embed_atoms(self, batch: GraphBatch, terms: list[Terms]) -> Tensor:
        return sum((term.atom for term in terms if term.atom is not None), self.embedding(batch.x))  # [T, D]

    def run_local_blocks(self, atoms: Tensor, structure: Structure) -> Tensor:
        for block in self.local_blocks:
            atoms = block(atoms, structure)
        return atoms  # [T, D]

    def read_trunk(self, trunk: Trunk, read_atoms: bool) -> tuple[Tensor, Tensor]:
        """As ``run_blocks``, but once for all networks that share their blocks."""
        if (self.blocks, read_atoms) not in trunk.known:
            trunk.known[self.blocks, read_atoms] = self.run_blocks(*trunk[:2], read_atoms)
        return trunk.known[self.blocks, read_atoms]

    def run_blocks(self, atoms: Tensor, structure: Structure, read_atoms: bool = True) -> tuple[Tensor, Tensor]:
        """Runs the blocks on the atoms [T, D] from the local blocks; returns the CLS [B, D] and atom embeddings [T, D].

        Without ``read_atoms``, the last one computes only the CLS rows, and the returned atoms are empty.
        """
        (*blocks, last), num_cls = self.blocks, structure.num_cls
        x = torch.cat([self.cls.expand(num_cls, -1), atoms])  # [N, D]
        for block in blocks:
            x = block(x, x.shape[0], structure)
        x = last(x, x.shape[0] if read_atoms else num_cls, structure)
        if self.last_norm is not None:
            x = self.last_norm.packed(x, num_cls)
        return x[:num_cls], x[num_cls:]

    def pair_bias(self, batch: GraphBatch, terms: list[Terms]) -> Tensor:
        """Attention bias of ordered atom pairs [P, H], shared by all layers."""
        pairs = [term.pair for term in terms if term.pair is not None]
        if not pairs:
            channels = self.config.bias_hidden or self.config.heads
            pairs = [self.cls_bias.new_zeros(batch.num_pairs, channels)]
        total = pairs[0] + pairs[1] if len(pairs) > 1 else pairs[0]
        for more in pairs[2:]:
            total += more  # in the memory of the first sum: new memory takes longer than the addition
        return self.bias_network(total)

    def read(
        self, local_atoms: Tensor, cls: Tensor, atoms: Tensor, ptr: Tensor, conditions: Tensor | None = None
    ) -> Tensor:
        """Output [B, tasks] from atoms of the local blocks and the output of ``run_blocks``; raises as ``forward``."""
        if self.config.conditions and conditions is None:
            raise InputError("the network reads conditions of the measurement: name the table model that it is part of")
        read = self.readout.read(cls, atoms, ptr)
        predicted = self.head(read if conditions is None else torch.cat([read, conditions.to(read)], dim=1))
        return predicted if self.atom_values is None else predicted + self.atom_values(local_atoms, ptr)

    def forward(self, batch: "Batch | GraphBatch") -> Tensor:
        """Output [B, tasks] on the scale of the loss: standardized targets of a regression, or logits of classes.

        ``Graphormer.task.predict`` converts it to the original scale, or to probabilities. Raises as ``encode``, and
        InputError if the model reads conditions and the batch has none.
        """
        return self.embed_and_predict(batch)[1]

    def embed_and_predict(self, batch: "Batch | GraphBatch", trunk: Trunk | None = None) -> tuple[Tensor, Tensor]:
        """The final embeddings of the CLS tokens [B, D] and the output [B, tasks]; arguments as ``encode_cls``."""
        batch = self.packed(batch)
        trunk = trunk or self.run_trunk(batch)
        cls, atoms = self.read_trunk(trunk, self.atoms_matter)
        conditions = batch.conditions if self.config.conditions else None
        return cls, self.read(trunk.local_atoms, cls, atoms, batch.ptr, conditions)
