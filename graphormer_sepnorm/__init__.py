"""Graphormer with separate normalization of the CLS token, for molecular property prediction.

Names are imported when they are asked for: PyTorch Geometric and scikit-learn take seconds, and the processes that
only read SMILES need neither.
"""

import importlib

from graphormer_sepnorm.version import __version__

MODULES = {
    "Config": "config",
    "GraphBatch": "graphs",
    "Graphormer": "inference.pretrained",
    "GraphormerClassifier": "interfaces.sklearn",
    "GraphormerEmbedder": "interfaces.sklearn",
    "GraphormerRegressor": "interfaces.sklearn",
    "GraphormerTransform": "encodings.transform",
    "ModelConfig": "config",
    "SepNorm": "layers.norms",
    "ShareNorm": "layers.norms",
    "TrainConfig": "config",
    "base": "recipes",
    "best": "recipes",
    "separate_norms": "layers.separate",
    "slim": "recipes",
}

__all__ = ["__version__", *MODULES]


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
