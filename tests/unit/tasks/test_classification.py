import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.tasks.classification import Classification

NAN = float("nan")


def test_classification_loss_by_hand_and_missing_labels_have_no_gradient():
    task = Classification(TaskConfig(kind="classification", metric="rocauc", targets=("a", "b")))
    output = torch.zeros(2, 2, requires_grad=True)
    loss = task.loss(output, torch.tensor([[1.0, NAN], [0.0, NAN]]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert output.grad.tolist() == [[-0.25, 0.0], [0.25, 0.0]]
    assert task.predict(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]


def test_positives_are_weighted_if_requested():
    """Three negatives per positive; a target without positives has weight 1."""
    y = np.array([[1, 0], [0, 0], [0, NAN], [0, 0]], np.float32)
    task = TaskConfig(kind="classification", metric="rocauc", targets=("a", "b"), balance=True)
    balanced = Classification(task).fitted(y)
    assert balanced.pos_weight == (3.0, 1.0)
    assert Classification(replace(task, balance=False)).fitted(y).pos_weight == ()
    losses = [
        Classification(balanced).loss(torch.zeros(1, 2), torch.tensor([[label, NAN]])).item() for label in (1.0, 0.0)
    ]
    assert losses == pytest.approx([3 * math.log(2), math.log(2)])
