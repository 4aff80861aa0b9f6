"""A recipe whose networks train for a moment."""

from dataclasses import replace
from pathlib import Path

import pytest

from graphormer_sepnorm.config import TrainConfig, config_to_json
from tests.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory) -> str:
    """The config of a network of one layer."""
    path: Path = tmp_path_factory.mktemp("recipe") / "config.json"
    _, config = tiny_model("mol")
    path.write_text(config_to_json(replace(config, train=TrainConfig(epochs=2, lr=2e-2, batch_size=16))))
    return str(path)
