"""Tasks: losses, predictions and metrics of each kind. To add a kind, write a class in ``kinds``."""

import torch

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.tasks.kinds import TASKS, Task
from graphormer_sepnorm.tasks.metrics import METRICS, Metric


def make_task(config: TaskConfig, device: torch.device | str = "cpu") -> Task:
    return TASKS[config.kind](config, device)
