from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.schemas import ConditionFacts, Options, TargetPrediction
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.predict.answers import Answers
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.trust import Trust
from tests.page import PretendedService
from tests.tiny import Trusting, tiny_model


def test_the_parts_of_a_target_are_called_as_their_columns():
    model, config = tiny_model()
    scaled = replace(config, task=replace(config.task, scales=("log10",)))
    errors, zeros = np.linspace(0.1, 2, 99)[:, None], np.zeros((99, 1))
    trust = Trust(fit_domain(["CCO"]), fit_intervals(errors, zeros, zeros))
    columns = PredictionColumns(Trusting([(model, scaled), (model, scaled)], trust=trust), Answers(0.9)).all
    parts = {one.name.removeprefix("logp").removeprefix("_") or "value": one.path[-1] for one in columns if one.path}
    names = ["value", "unlogged", "low", "high", "unlogged_low", "unlogged_high", "std"]
    assert parts == dict(zip(names, names, strict=True)) and set(names) <= set(TargetPrediction.model_fields)


def test_an_unknown_condition_is_refused():
    facts = PretendedService().facts().model_copy(update={"conditions": []})
    with pytest.raises(InputError, match=r"^T is not a condition of the model: it reads none$"):
        facts.check(Options(conditions={"T": "1"}))
    facts = facts.model_copy(update={"conditions": [ConditionFacts(name="temperature", choices=[])]})
    facts.check(Options(conditions={"temperature": "25"}))
    with pytest.raises(InputError, match="its conditions are temperature; did you mean 'temperature'"):
        facts.check(Options(conditions={"temperatur": "25"}))
