"""Optuna's TPE, with random numbers of its own for each trial."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

COUNTED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)


class SeededSampler(BaseSampler):
    """Draws a trial with a seed made of ``seed`` and the number of trials before it that have not failed.

    So a trial that is begun again has the same values, and a search that goes on, one trial at a time, is the same as
    one that was never stopped.
    """

    def __init__(self, seed: int):
        self.seed = seed
        self.samplers: dict[int, TPESampler] = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        counted = study.get_trials(deepcopy=False, states=COUNTED)
        number = sum(other.number < trial.number for other in counted)
        state = np.random.SeedSequence((self.seed, number)).generate_state(1)
        self.samplers[trial.number] = TPESampler(seed=int(state[0]))

    def after_trial(self, study: Study, trial: FrozenTrial, *outcome: object) -> None:
        self.samplers.pop(trial.number, None)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self.samplers[trial.number].infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self.samplers[trial.number].sample_relative(study, trial, dict(search_space))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self.samplers[trial.number].sample_independent(study, trial, param_name, param_distribution)
