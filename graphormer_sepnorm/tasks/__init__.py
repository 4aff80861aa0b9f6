"""Tasks: losses, predictions and metrics of each kind. To add a kind, write a file and add a line to ``TASKS``."""

import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.tasks.base import Task
from graphormer_sepnorm.tasks.classification import Classification
from graphormer_sepnorm.tasks.metrics import METRICS, Metric
from graphormer_sepnorm.tasks.multiclass import Multiclass
from graphormer_sepnorm.tasks.regression import Regression

__all__ = ["METRICS", "TASKS", "Metric", "Task", "make_task"]
TASKS: dict[str, type[Task]] = {task.kind: task for task in (Regression, Classification, Multiclass)}


def make_task(config: TaskConfig, device: torch.device | str = "cpu") -> Task:
    """The task of a config, with its tensors on a device."""
    return TASKS[config.kind](config, device)
