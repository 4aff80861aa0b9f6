import math

import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.tasks.multiclass import Multiclass

NAN = float("nan")
CLASSES = TaskConfig("multiclass", "rocauc", ("y_a", "y_b", "y_c"))


def test_classes_exclude_each_other():
    task = Multiclass(CLASSES)
    output = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [1.0, 1.0, 1.0]])) + 7
    assert task.predict(output)[:2].tolist() == [pytest.approx([0.5, 0.25, 0.25]), pytest.approx([0.1, 0.1, 0.8])]
    y = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [NAN] * 3])
    assert task.loss(output, y).item() == pytest.approx(-(math.log(0.25) + math.log(0.8)) / 2)
    assert task.loss(output, y).item() == pytest.approx(
        torch.nn.functional.cross_entropy(output[:2], torch.tensor([1, 2])).item()
    )
