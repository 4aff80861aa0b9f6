"""Reads the pickles of PyG's and OGB's datasets without executing anything in them."""

import collections
import contextlib
import io
import os
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, BinaryIO
from unittest import mock

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage

PYG_CLASSES = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, NodeStorage, EdgeStorage]
FORCE_TENSORS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


class TensorUnpickler(pickle.Unpickler):
    """Reads lists and dicts of tensors; raises UnpicklingError for anything else."""

    known = {  # noqa: RUF012, constant
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
        ("torch.storage", "_load_from_bytes"): lambda content: torch.load(io.BytesIO(content), weights_only=True),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a dataset")
        return self.known[module, name]


def load_tensors_only(file: BinaryIO) -> Any:
    return TensorUnpickler(file).load()


@contextlib.contextmanager
def tensors_only() -> Iterator[None]:
    """Within it, PyG's ZINC and ``torch.load`` read only tensors and PyG's classes, never plain pickle."""
    with (
        torch.serialization.safe_globals(PYG_CLASSES),
        mock.patch.dict(os.environ, {FORCE_TENSORS: "1"}),
        mock.patch("torch_geometric.datasets.zinc.pickle", SimpleNamespace(load=load_tensors_only)),
    ):
        yield
