"""``graphormer-sepnorm info``."""

import json
from typing import Annotated

import typer

from graphormer_sepnorm.interfaces.guard import in_first_process
from graphormer_sepnorm.system.signals import leaving_at_once


@in_first_process
def info(model: Annotated[str, typer.Argument(help="Run folder, weights file, or name of shipped weights.")]) -> None:
    """Say what a model is: architecture, training data, scores, vocabulary, licence.

    Example: graphormer-sepnorm info zinc-subset
    """
    with leaving_at_once():
        from graphormer_sepnorm.runs.info import as_text, describe_model
        from graphormer_sepnorm.runs.zoo import resolve_model

    facts = describe_model(resolve_model(model))
    print(as_text(facts))
    print(json.dumps(facts))
