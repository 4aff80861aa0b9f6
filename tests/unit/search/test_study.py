from dataclasses import replace
from types import SimpleNamespace

import optuna
import pytest
import torch
from optuna import TrialPruned
from optuna.trial import TrialState

from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES, slim, task_config
from graphormer_sepnorm.search import study as module
from graphormer_sepnorm.search.study import (
    PROBLEM,
    SPACE,
    StudyFolder,
    fixed_by,
    give_up_running,
    is_lack_of_memory,
    open_study,
    searched,
    summary,
    train_trial,
    values_of,
    with_values,
    write_trials,
)
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.settings import with_settings
from graphormer_sepnorm.training.trainer import Epoch

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


TASK = TaskConfig("regression", "mae", ("y",))


def config_of(recipe: str = "slim", *settings: str):
    found = RECIPES[recipe]
    config = task_config("table.csv", "mol", TASK, found.train, architecture=found.architecture)
    return with_settings(config, settings)


def test_every_field_belongs_to_a_config_that_accepts_both_ends_of_its_range():
    config = config_of()
    for name, place in SPACE.items():
        for end in getattr(place, "choices", None) or (place.low, place.high):
            assert values_of(with_values(config, {name: end}))[name] == end
    assert set(SPACE["norm"].choices) <= set(NORMS) and set(SPACE["optimizer"].choices) == set(OPTIMIZERS)


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.train.start_from is None])
def test_a_recipe_lies_in_the_space_that_is_searched_around_it(recipe):
    config = config_of(recipe)
    trial = optuna.create_study().ask(searched(config, frozenset()))
    for name, value in values_of(config).items():
        place = trial.distributions[name]
        assert place._contains(place.to_internal_repr(value)), name
    assert with_values(config, values_of(config)) == config


def test_widths_are_multiples_of_the_heads_and_the_ffn_keeps_its_proportion():
    config = config_of("slim", "model.heads=20", "model.width=160", "model.ffn_width=640")
    width = searched(config, frozenset())["width"]
    assert (width.low, width.high, width.step) == (60, 160, 20), "48 is no multiple, and the recipe has 160"
    assert with_values(config, {"width": 40}).model.ffn_width == 160


def test_fields_with_a_setting_are_not_searched():
    assert fixed_by(["train.lr=0.1", "model.layers=2", "model.encodings.2.max_hops=3"]) == {"lr", "layers"}
    assert fixed_by(['train={"epochs": 2}']) == {"lr", "batch_size", "warmup", "weight_decay", "optimizer"}
    assert fixed_by([]) == frozenset()
    assert "lr" not in searched(config_of(), frozenset({"lr"}))


def test_blocks_without_attention_keep_their_messages():
    assert searched(config_of("local"), frozenset())["messages"].choices == (True,)
    assert searched(config_of("best"), frozenset())["messages"].choices == (False, True)
    assert "messages" not in searched(config_of("local"), frozenset({"messages"}))
    assert searched(config_of("best", "model.message_gates=true"), frozenset())["messages"].choices == (True,)


@pytest.mark.parametrize(("cooldown", "longest"), [(0.8, 0.2), (0.1, 0.3), (1.0, 0.0)])
def test_the_warmup_ends_before_the_cooldown(cooldown, longest):
    trapezoid = ['train.schedule="trapezoid"', f"train.cooldown={cooldown}", "train.warmup=0"]
    found = searched(config_of("slim", *trapezoid), frozenset())["warmup"]
    assert (found.low, found.high) == pytest.approx((0, longest))


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> tuple[StudyFolder, Config]:
    folder = tmp_path_factory.mktemp("table")
    sample_table()[:60].to_csv(folder / "mols.csv", index=False)
    options = TableOptions(str(folder / "mols.csv"), ("penalized_logp",), split="random")
    config = task_config(TABLE, "mol", table_task(options), TrainConfig(epochs=2), architecture=slim)
    config = replace(config, model=replace(config.model, layers=1, width=16, ffn_width=16, heads=2))
    write_labelled(folder / "study", read_labelled(options, "mol"), config, options)
    return StudyFolder(folder / "study"), config


def train_here(trial, table, **train) -> None:
    folder, config = table
    config = replace(config, train=replace(config.train, **train))
    train_trial(trial, folder, config, choose("cpu"), torch.get_num_threads())


def new_trial() -> optuna.Trial:
    return optuna.create_study().ask()


def test_a_trial_reports_its_epochs_to_the_study(table):
    trial = new_trial()
    train_here(trial, table)
    reported = trial.study.trials[0].intermediate_values
    assert list(reported) == [1, 2] and all(value > 0 for value in reported.values())


def test_epochs_that_min_updates_adds_are_pruned_too(table, monkeypatch):
    """48 molecules in batches of 64: one update per epoch."""
    trial = new_trial()
    monkeypatch.setattr(trial, "should_prune", lambda: len(trial.study.trials[0].intermediate_values) == 4)
    with pytest.raises(TrialPruned):
        train_here(trial, table, min_updates=6)
    assert list(trial.study.trials[0].intermediate_values) == [1, 2, 3, 4]


def fail_after_an_epoch(monkeypatch, error: Exception) -> list:
    """Makes trainings fail in their second epoch; returns the splits that are loaded."""

    def epochs():
        yield Epoch(1, 0.5, 0.25, 1e-3, 100.0, 1.0)
        raise error

    loaded: list = []
    monkeypatch.setattr(module, "Trainer", lambda config, *splits: SimpleNamespace(config=config, epochs=epochs))
    monkeypatch.setattr(module, "load_split", lambda table, split, encodings: loaded.append(split))
    return loaded


@pytest.mark.parametrize(("error", "problem"), [(InputError("loss nan"), "loss nan"), (MemoryError(), "out of memory")])
def test_a_training_that_fails_is_pruned_with_the_reason(table, monkeypatch, error, problem):
    loaded = fail_after_an_epoch(monkeypatch, error)
    trial = new_trial()
    with pytest.raises(TrialPruned):
        train_here(trial, table)
    kept = trial.study.trials[0]
    assert kept.intermediate_values == {1: 0.25} and kept.user_attrs == {PROBLEM: problem}
    assert loaded == ["train", "val"], "a trial sees no test molecule"


def test_lack_of_memory_by_its_exceptions():
    assert is_lack_of_memory(MemoryError()) and is_lack_of_memory(torch.OutOfMemoryError())
    with pytest.raises(RuntimeError) as lacking:
        torch.empty(2**60)
    assert is_lack_of_memory(lacking.value)
    for text in ("CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"):
        assert is_lack_of_memory(RuntimeError(text))
    assert not is_lack_of_memory(RuntimeError("shapes do not match"))
