import optuna
from optuna.trial import TrialState

from graphormer_sepnorm.search.sampler import SeededSampler


def draw(study: optuna.Study) -> optuna.Trial:
    trial = study.ask()
    trial.suggest_float("a", 0, 1)
    trial.suggest_float("b", 0, 1)
    return trial


def test_a_trial_depends_on_the_seed_and_those_before_it_that_have_not_failed():
    first, second = (optuna.create_study(sampler=SeededSampler(seed)) for seed in (0, 1))
    drawn = [draw(first) for _ in range(3)]
    assert len({value for trial in drawn for value in trial.params.values()}) == 6
    assert draw(second).params != drawn[0].params
    again = optuna.create_study(sampler=SeededSampler(0))
    for trial in drawn:
        lost = draw(again)
        again.tell(lost, state=TrialState.FAIL)
        assert lost.params == trial.params == draw(again).params
