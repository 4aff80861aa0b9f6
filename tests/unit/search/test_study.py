import optuna
import pytest
from optuna.trial import TrialState

from graphormer_sepnorm.config import TaskConfig, TrainConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.recipes import slim, task_config
from graphormer_sepnorm.search.study import StudyFolder, give_up_running, open_study, summary, write_trials
from graphormer_sepnorm.tables.prepared_table import TABLE

PLACES = {"lr": optuna.distributions.FloatDistribution(1e-4, 1e-2)}


def config_for(metric: str = "mae"):
    kind = "regression" if metric == "mae" else "classification"
    return task_config(TABLE, "mol", TaskConfig(kind, metric, ("y",)), TrainConfig(), architecture=slim)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "best"), [("mae", 1.0), ("rocauc", 2.0)])
def test_a_reopened_study_keeps_its_direction_and_drops_orphaned_trials(tmp_path, metric, best):
    study = open_study(tmp_path / "study.db", config_for(metric))
    for score in (1.0, 2.0):
        study.tell(study.ask(PLACES), score)
    study.ask(PLACES)
    again = open_study(tmp_path / "study.db", config_for(metric))
    give_up_running(again)
    assert again.best_value == best
    assert [trial.state for trial in again.trials] == [TrialState.COMPLETE, TrialState.COMPLETE, TrialState.FAIL]


def test_a_study_without_a_complete_trial_has_no_summary(tmp_path):
    study = optuna.create_study()
    trial = study.ask(PLACES)
    trial.set_user_attr("problem", "killed by SIGKILL")
    study.tell(trial, state=TrialState.PRUNED)
    with pytest.raises(InputError, match="the first of 1 problems: killed by SIGKILL"):
        summary(study, StudyFolder(tmp_path), config_for())
    study.tell(study.ask(PLACES), 0.5)
    found = summary(study, StudyFolder(tmp_path), config_for())
    assert (found["trials"], found["complete"], found["pruned"], found["validation"]) == (2, 1, 1, 0.5)
    write_trials(study, StudyFolder(tmp_path), config_for())
    header, lost, kept = (tmp_path / "trials.csv").read_text().splitlines()
    assert header == "trial,state,validation mae,epochs,seconds,lr,problem"
    assert lost.startswith("0,pruned,,") and lost.endswith("killed by SIGKILL") and kept.startswith("1,complete,0.5,")
