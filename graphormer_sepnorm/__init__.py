"""Graphormer with separate normalization of the CLS token, for molecular property prediction.

Names are imported when they are asked for: PyTorch Geometric and scikit-learn take seconds, and the processes that
only read SMILES need neither.
"""

import importlib

from graphormer_sepnorm.version import __version__

MODULES = {
    "Config": "config",
    "GraphBatch": "batching",
    "Graphormer": "pretrained",
    "GraphormerClassifier": "estimators",
    "GraphormerEmbedder": "estimators",
    "GraphormerRegressor": "estimators",
    "GraphormerTransform": "encodings",
    "ModelConfig": "config",
    "SepNorm": "norms",
    "ShareNorm": "norms",
    "TrainConfig": "config",
    "base": "config",
    "best": "config",
    "separate_norms": "separate",
    "slim": "config",
}

__all__ = ["__version__", *MODULES]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
