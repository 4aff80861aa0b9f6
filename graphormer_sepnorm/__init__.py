"""Graphormer with separate normalization of the CLS token, for molecular property prediction."""

from graphormer_sepnorm.batching import GraphBatch
from graphormer_sepnorm.config import Config, ModelConfig, TrainConfig, base, slim
from graphormer_sepnorm.encodings import GraphormerTransform
from graphormer_sepnorm.model import Graphormer
from graphormer_sepnorm.norms import SepNorm, ShareNorm
from graphormer_sepnorm.version import __version__

__all__ = [
    "Config",
    "GraphBatch",
    "Graphormer",
    "GraphormerTransform",
    "ModelConfig",
    "SepNorm",
    "ShareNorm",
    "TrainConfig",
    "__version__",
    "base",
    "slim",
]
