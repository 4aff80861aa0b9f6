"""The command line with bfloat16 as processors with AVX512-BF16 or AMX compute it, on one that has neither.

    python tests/benchmarks/bfloat16.py train --dataset zinc-subset --epochs 20 --precision bfloat16 --out run
    python tests/benchmarks/bfloat16.py predict zinc-subset molecules.csv -o out.csv --precision bfloat16

Those multiply numbers of bfloat16, add up in float32 and round the sum once. PyTorch's own replacement for them takes
seven times as long as float32, too long for whole trainings; the times of this one mean nothing.
"""

import torch
from torch import Tensor

from graphormer_sepnorm.interfaces.cli import main

LIBRARY = torch.library.Library("aten", "IMPL")


def mm(a: Tensor, b: Tensor) -> Tensor:
    """Products of matrices, as float32 of the numbers that were rounded."""
    out = a.new_empty(a.shape[0], b.shape[1], dtype=torch.float32)
    return torch.mm(a.float(), b.float(), out=out).to(a.dtype)


def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    out = a.new_empty(a.shape[0], b.shape[1], dtype=torch.float32)
    return torch.addmm(bias.float(), a.float(), b.float(), beta=beta, alpha=alpha, out=out).to(a.dtype)


if __name__ == "__main__":
    LIBRARY.impl("mm", mm, "CPU")
    LIBRARY.impl("addmm", addmm, "CPU")
    main()
