"""Graphs to batches: the only place that knows how a batch is packed.

Axis letters: B molecules, T atoms of the batch, P ordered atom pairs (sum of n^2), F feature columns.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch_geometric.data import Batch


@dataclass(frozen=True)
class GraphBatch:
    """Some molecules, packed.

    Attributes:
        x: integer [T, F] atom features.
        ptr: int64 [B + 1], molecule b has the atoms ptr[b] to ptr[b + 1].
        arrays: what the encodings precomputed, by name; [T, ...] per atom or [P, ...] per ordered pair of atoms.
        y: float32 [B, tasks] targets, NaN where a label is missing; None where there are none.
    """

    x: Tensor
    ptr: Tensor
    arrays: dict[str, Tensor] = field(default_factory=dict)
    y: Tensor | None = None

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_atoms(self) -> int:
        return self.x.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "GraphBatch":
        """The same batch on another device; the call that Lightning Fabric and PyTorch's utilities make."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        return replace(
            self,
            x=move(self.x),
            ptr=move(self.ptr),
            arrays={name: move(array) for name, array in self.arrays.items()},
            y=None if self.y is None else move(self.y),
        )

    @classmethod
    def from_pyg(cls, batch: Batch, array_names: list[str]) -> "GraphBatch":
        """Reads a batch of PyG's DataLoader whose graphs went through ``GraphormerTransform``.

        Args:
            batch: PyG batch with ``x``, ``ptr`` and the arrays.
            array_names: the arrays that the model's encodings need.

        Raises:
            ValueError: an array is missing.
        """
        missing = [name for name in array_names if name not in batch]
        if missing:
            raise ValueError(f"the batch has no {', '.join(missing)}: apply GraphormerTransform to its graphs first")
        y = batch.y if "y" in batch else None
        return cls(
            x=batch.x.view(batch.num_nodes, -1),
            ptr=batch.ptr,
            arrays={name: batch[name] for name in array_names},
            y=None if y is None else y.view(batch.num_graphs, -1).float(),
        )
