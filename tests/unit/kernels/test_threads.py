import pytest
import torch

from graphormer_sepnorm.kernels.threads import check_tensor


def test_kernels_check_their_tensors():
    check_tensor("x", torch.zeros(2, 3), (2, 3))
    check_tensor("x", torch.zeros(2, dtype=torch.int64), (2,), torch.int64)
    with pytest.raises(TypeError, match=r"x must be a torch\.float32 CPU tensor, got torch\.float64 on cpu"):
        check_tensor("x", torch.zeros(2, 3, dtype=torch.float64), (2, 3))
    with pytest.raises(TypeError, match="on meta"):
        check_tensor("x", torch.zeros(2, 3, device="meta"), (2, 3))
    with pytest.raises(ValueError, match=r"x must have the shape \[3, 2\], got \[2, 3\]"):
        check_tensor("x", torch.zeros(2, 3), (3, 2))
