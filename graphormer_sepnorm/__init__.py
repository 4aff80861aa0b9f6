"""Graphormer with separate normalization of the CLS token, for molecular property prediction.

Public names are imported on first use: PyTorch Geometric and scikit-learn take seconds. Editors and type checkers read
the ``TYPE_CHECKING`` imports; at run time, ``MODULES`` is used.
"""

import importlib
from typing import TYPE_CHECKING

from graphormer_sepnorm.version import __version__

PUBLIC = {
    "config": "Config ModelConfig TaskConfig TrainConfig",
    "encodings.transform": "GraphormerTransform",
    "errors": "InputError",
    "graphs": "GraphBatch",
    "interfaces.sklearn": "GraphormerClassifier GraphormerEmbedder GraphormerRegressor",
    "layers.batch_norm": "reestimate_batch_norm",
    "layers.norms": "SepNorm ShareNorm",
    "layers.separate": "separate_norms",
    "predict.pretrained": "Graphormer",
    "project.profile": "Profile",
    "recipes": "base best local slim",
    "table_model.load": "load_model load_models",
}
MODULES = {name: module for module, names in PUBLIC.items() for name in names.split()}
__all__ = [
    "Config", "GraphBatch", "Graphormer", "GraphormerClassifier", "GraphormerEmbedder", "GraphormerRegressor",
    "GraphormerTransform", "InputError", "ModelConfig", "Profile", "SepNorm", "ShareNorm", "TaskConfig", "TrainConfig",
    "__version__", "base", "best", "load_model", "load_models", "local", "reestimate_batch_norm", "separate_norms",
    "slim",
]  # fmt: skip

if TYPE_CHECKING:
    from graphormer_sepnorm.config import Config, ModelConfig, TaskConfig, TrainConfig
    from graphormer_sepnorm.encodings.transform import GraphormerTransform
    from graphormer_sepnorm.errors import InputError
    from graphormer_sepnorm.graphs import GraphBatch
    from graphormer_sepnorm.interfaces.sklearn import GraphormerClassifier, GraphormerEmbedder, GraphormerRegressor
    from graphormer_sepnorm.layers.batch_norm import reestimate_batch_norm
    from graphormer_sepnorm.layers.norms import SepNorm, ShareNorm
    from graphormer_sepnorm.layers.separate import separate_norms
    from graphormer_sepnorm.predict.pretrained import Graphormer
    from graphormer_sepnorm.project.profile import Profile
    from graphormer_sepnorm.recipes import base, best, local, slim
    from graphormer_sepnorm.table_model.load import load_model, load_models
else:

    def __getattr__(name: str) -> object:
        if name not in MODULES:
            from graphormer_sepnorm.errors import did_you_mean

            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, MODULES)}")
        return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
