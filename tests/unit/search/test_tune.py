"""The search itself, with trials whose scores are given."""

import multiprocessing
import signal
import sqlite3
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import optuna
import pytest
import torch
from optuna import TrialPruned
from optuna.trial import TrialState

from graphormer_sepnorm.config import Config, TaskConfig, TrainConfig, read_config
from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.layers.norms import NORMS
from graphormer_sepnorm.recipes import RECIPES, Recipe, find_recipe, slim, task_config
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.search import tune as module
from graphormer_sepnorm.search.study import (
    PROBLEM,
    SPACE,
    StudyFolder,
    TrialKilled,
    fixed_by,
    give_up_running,
    is_lack_of_memory,
    open_study,
    searched,
    summary_of_study,
    train_trial,
    values_of,
    with_values,
    write_trials,
)
from graphormer_sepnorm.search.tune import SearchLimits, tune
from graphormer_sepnorm.system.device import choose
from graphormer_sepnorm.system.signals import Interrupted
from graphormer_sepnorm.tables.labels import TableOptions, read_labelled, table_task
from graphormer_sepnorm.tables.prepared_table import TABLE, write_labelled
from graphormer_sepnorm.training.optimizers import OPTIMIZERS
from graphormer_sepnorm.training.settings import with_settings
from graphormer_sepnorm.training.trainer import Epoch
from tests.tables import records

EPOCHS = 5
KILLED = TrialKilled("killed by SIGKILL")
SILENCE = TimeoutError()


class Here:
    """Replaces ``TrialProcess``: trains in this process when it starts, and has then ended; at ``SILENCE`` never."""

    def __init__(self, *arguments):
        self.connection, self.theirs = multiprocessing.Pipe()
        self.ending = None
        try:
            module.saved.train_trial(*arguments)
        except Exception as error:
            self.ending = error
        if self.ending is not SILENCE:
            self.theirs.send("over")

    def outcome(self):
        if isinstance(self.ending, TrialPruned | InputError | TrialKilled | None):
            return self.ending
        raise self.ending

    def kill(self):
        self.connection.close()


def epochs(script: list):
    """A score is the metric of an epoch; an exception is raised."""
    for number, said in enumerate(script, start=1):
        if isinstance(said, BaseException):
            raise said
        yield Epoch(number, train_loss=0.5, val_metric=said, lr=1e-3, molecules_per_second=100.0, seconds=1.0)


def by_rate(number: int, config: Config) -> list:
    return [abs(config.train.lr - 0.002)] * EPOCHS


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("table") / "mols.csv"
    table = sample_table()[:60]
    table.assign(big=table.smiles.str.len() > 35).to_csv(path, index=False)
    return str(path)


@pytest.fixture(autouse=True)
def sqlite_without_waiting_for_the_disk(monkeypatch):
    connect = sqlite3.connect

    def connect_hastily(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_hastily)


@pytest.fixture
def search(path, tmp_path, monkeypatch):
    monkeypatch.setattr(module.saved, "draw_study", lambda study, folder, config: None)
    monkeypatch.setattr(module, "TrialProcess", Here)
    monkeypatch.setattr(module.saved, "load_split", lambda table, split, encodings: None)

    def run(script=by_rate, trials=6, processes=1, seconds=None, target="penalized_logp", seed=0, out="study", **more):
        run.configs = []

        def trainer(own, train, val):
            run.configs.append(own)
            return SimpleNamespace(config=own, epochs=partial(epochs, script(len(run.configs) - 1, own)))

        monkeypatch.setattr(module.saved, "Trainer", trainer)
        kind = "regression" if target == "penalized_logp" else "classification"
        options = TableOptions(path, (target,), kind, split="random")
        train = TrainConfig(epochs=EPOCHS, seed=seed)
        config = task_config(TABLE, "mol", table_task(options), Recipe(slim, train))
        limits = SearchLimits(trials, processes, seconds)
        run.recipe = config
        return tune(options, config, tmp_path / out, limits, **{"compare": False, **more})

    return run


def lines(folder) -> list[dict]:
    return records(folder / "trials.csv")


@pytest.mark.slow
def test_a_search_tries_the_recipe_first_and_keeps_the_best_as_a_recipe(search, tmp_path):
    result = search(trials=8)
    assert search.configs[0] == search.recipe and len(search.configs) == result["trials"] == 8
    best = min(search.configs, key=lambda config: abs(config.train.lr - 0.002))
    study = StudyFolder(tmp_path / "study")
    assert read_config(study.best) == best and find_recipe(str(study.best)).train == best.train
    assert result["validation"] == pytest.approx(abs(best.train.lr - 0.002))
    assert result["parameters"] == values_of(best)
    assert result["complete"] + result["pruned"] == 8
    written = lines(study.path)
    assert [line["state"] for line in written[:5]] == ["complete"] * 5, "there is no median yet"
    assert [float(line["lr"]) for line in written] == [config.train.lr for config in search.configs]
    assert not study.best_run.path.exists() and not list(study.path.glob("*.lock"))


@pytest.mark.slow
@pytest.mark.parametrize("stopped_in", (0, 4, 12))
def test_an_interrupted_search_continues_as_if_uninterrupted(search, tmp_path, stopped_in):
    """Interrupted in trial 0, the recipe; in a random trial; and in one sampled from earlier results."""
    search(trials=14, out="whole")
    whole = [values_of(config) for config in search.configs]

    def interrupted(number, config):
        return [0.0, Interrupted(signal.SIGINT)] if number == stopped_in else by_rate(number, config)

    with pytest.raises(Interrupted) as stop:
        search(interrupted, trials=14)
    assert "--resume" in stop.value.advice
    before = [values_of(config) for config in search.configs]
    search(trials=14, resume=True)
    assert before[:-1] + [values_of(config) for config in search.configs] == whole
    kept = [line for line in lines(tmp_path / "study") if line["state"] != "fail"]
    expected = lines(tmp_path / "whole")
    assert [line["validation mae"] for line in kept] == [line["validation mae"] for line in expected]
    assert read_config(tmp_path / "study" / "best.json") == read_config(tmp_path / "whole" / "best.json")


@pytest.mark.slow
def test_trials_below_the_median_are_pruned_by_their_epochs(search, tmp_path):
    result = search(lambda number, config: [float(number)] * EPOCHS, trials=8)
    assert (result["complete"], result["pruned"], result["validation"]) == (5, 3, 0.0)
    assert [line["epochs"] for line in lines(tmp_path / "study")] == ["5"] * 5 + ["1"] * 3


@pytest.mark.slow
def test_a_diverging_or_killed_trial_does_not_affect_others(search, tmp_path):
    ends = {1: InputError("loss nan"), 2: KILLED}
    script = lambda number, config: [0.5, ends[number]] if number in ends else by_rate(number, config)  # noqa: E731
    result = search(script, trials=4)
    assert (result["complete"], result["pruned"]) == (2, 2)
    assert [line["problem"] for line in lines(tmp_path / "study")] == ["", "loss nan", "killed by SIGKILL", ""]


@pytest.mark.slow
def test_trials_that_are_killed_one_after_the_other_end_the_search(search, tmp_path):
    def script(number, config):
        return by_rate(number, config) if number < 2 else [KILLED]

    with pytest.raises(InputError, match=r"3 trials in a row were killed by SIGKILL: .*memory.*--resume"):
        search(script, trials=20)
    assert len(search.configs) == 5
    assert search(trials=6, resume=True)["complete"] == 3


@pytest.mark.slow
def test_the_time_limit_stops_running_trials_and_they_start_again(search, tmp_path, monkeypatch):
    """The limit is reached during the third trial, which never reports anything."""
    late = []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 100.0 if late else 0.0))

    def silent(number, config):
        late.extend([True] * (number == 2))
        return [SILENCE] if number == 2 else by_rate(number, config)

    assert search(silent, trials=4, seconds=10.0)["trials"] == 2
    lost = search.configs[2]
    assert search(trials=4, resume=True)["trials"] == 4
    assert search.configs[0] == lost
    assert [line["state"] for line in lines(tmp_path / "study")] == ["complete"] * 2 + ["fail"] + ["complete"] * 2


@pytest.mark.slow
def test_a_folder_that_is_not_free_is_refused(search, tmp_path, path):
    search(trials=2)
    before = {file.name: file.read_bytes() for file in (tmp_path / "study").iterdir()}
    with pytest.raises(InputError, match="already holds a search: continue it with --resume"):
        search(trials=3)
    with pytest.raises(InputError, match="a search with other options"):
        search(trials=3, seed=1, resume=True)
    with pytest.raises(InputError, match="a search with other options"):
        search(trials=3, fixed=frozenset({"lr"}), resume=True)
    assert {file.name: file.read_bytes() for file in (tmp_path / "study").iterdir()} == before
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="holds a run"):
        search(out="run", resume=True)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["config.json"]


@pytest.mark.slow
def test_a_study_that_is_damaged_or_of_another_version_is_refused(search, tmp_path):
    search(trials=2)
    study = tmp_path / "study" / "study.db"
    whole = study.read_bytes()
    with sqlite3.connect(study) as database:
        database.execute("UPDATE alembic_version SET version_num = 'v99'")
    database.close()
    with pytest.raises(InputError, match=r"study\.db: The runtime optuna version"):
        search(trials=3, resume=True)
    for damaged in (b"not a database, but long enough to be read as one", whole[: len(whole) // 2]):
        study.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cannot read or write .*study\.db: "):
            search(trials=3, resume=True)


@pytest.mark.slow
def test_a_full_disk_gives_a_sentence_and_the_search_can_continue(search, monkeypatch):
    """SQLite reports a full disk for a file that may not grow."""
    search(trials=2)
    connect = sqlite3.connect

    def on_full_disk(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    with monkeypatch.context() as full:
        full.setattr(sqlite3, "connect", on_full_disk)
        with pytest.raises(InputError, match=r"cannot read or write .*study\.db: .*full"):
            search(trials=60, resume=True)
    assert search(trials=60, resume=True, seconds=0.0)["complete"] >= 2


@pytest.fixture
def trained(monkeypatch):
    def train_run(config, out, resume):
        assert resume and (out / TABLE).exists()
        train_run.runs.append((out.name, config))
        result = {"value": train_run.scores[out.name]}
        RunFolder(out).write_test(result)
        return result

    train_run.runs, train_run.scores = [], {"best": 0.5, "recipe": 0.25}
    monkeypatch.setattr(module, "train_run", train_run)
    return train_run


@pytest.mark.slow
def test_the_test_split_is_touched_once_at_the_end(search, trained, tmp_path):
    result = search(trials=3, compare=True)
    best = read_config(tmp_path / "study" / "best.json")
    assert trained.runs == [("best", best), ("recipe", search.recipe)]
    assert result["test"] == {"best": 0.5, "recipe": 0.25} and not result["better"]
    assert search(trials=3, compare=True, resume=True) == result and len(trained.runs) == 2
    assert search.configs == []
    alone = search(trials=1, compare=True, out="alone")
    assert trained.runs[2:] == [("best", search.recipe)]
    assert alone["test"] == {"best": 0.5, "recipe": 0.5} and not alone["better"]
    with pytest.raises(InputError, match="was compared on the test split after 3 trials"):
        search(trials=4, compare=True, resume=True)


TORCHRUN = {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("columns", "fixed", "environment", "problem"),
    [
        ({"weight_column": "w"}, (), {}, "leave their columns out"),
        ({"feature_columns": ("T",)}, (), {}, "leave their columns out"),
        ({}, SPACE, {}, "nothing to search"),
        ({}, (), TORCHRUN, "without torchrun"),
    ],
)
def test_what_cannot_be_searched_is_refused_first(path, tmp_path, monkeypatch, columns, fixed, environment, problem):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = TableOptions(path, ("penalized_logp",), **columns)
    config = task_config(TABLE, "mol", table_task(options), RECIPES["slim"])
    with pytest.raises(InputError, match=problem):
        tune(options, config, tmp_path / "study", SearchLimits(1), frozenset(fixed))
    assert not (tmp_path / "study").exists()


PLACES = {"lr": optuna.distributions.FloatDistribution(1e-4, 1e-2)}


TASK = TaskConfig("regression", "mae", ("y",))


def config_of(recipe: str = "slim", *settings: str, task: TaskConfig = TASK):
    return with_settings(task_config("table.csv", "mol", task, RECIPES[recipe]), settings)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metric", "best"), [("regression", "mae", 1.0), ("classification", "rocauc", 2.0)])
def test_a_reopened_study_keeps_its_direction_and_drops_orphaned_trials(tmp_path, kind, metric, best):
    config = config_of(task=TaskConfig(kind, metric, ("y",)))
    study = open_study(tmp_path / "study.db", config)
    for score in (1.0, 2.0):
        study.tell(study.ask(PLACES), score)
    study.ask(PLACES)
    again = open_study(tmp_path / "study.db", config)
    give_up_running(again)
    assert again.best_value == best
    assert [trial.state for trial in again.trials] == [TrialState.COMPLETE, TrialState.COMPLETE, TrialState.FAIL]


def test_a_study_without_a_complete_trial_has_no_summary(tmp_path):
    study = optuna.create_study()
    trial = study.ask(PLACES)
    trial.set_user_attr("problem", "killed by SIGKILL")
    study.tell(trial, state=TrialState.PRUNED)
    with pytest.raises(InputError, match="the first of 1 problems: killed by SIGKILL"):
        summary_of_study(study, StudyFolder(tmp_path), config_of())
    study.tell(study.ask(PLACES), 0.5)
    found = summary_of_study(study, StudyFolder(tmp_path), config_of())
    assert (found["trials"], found["complete"], found["pruned"], found["validation"]) == (2, 1, 1, 0.5)
    write_trials(study, StudyFolder(tmp_path), config_of())
    header, lost, kept = (tmp_path / "trials.csv").read_text().splitlines()
    assert header == "trial,state,validation mae,epochs,seconds,lr,problem"
    assert lost.startswith("0,pruned,,") and lost.endswith("killed by SIGKILL") and kept.startswith("1,complete,0.5,")


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
    config = task_config(TABLE, "mol", table_task(options), Recipe(slim, TrainConfig(epochs=2)))
    config = replace(config, model=replace(config.model, layers=1, width=16, ffn_width=16, heads=2))
    write_labelled(folder / "study", read_labelled(options, "mol"), config, options)
    return StudyFolder(folder / "study"), config


def train_here(trial, table, **train) -> None:
    folder, config = table
    config = replace(config, train=replace(config.train, **train))
    train_trial(trial, folder, config, choose("cpu"), torch.get_num_threads())


def new_trial() -> optuna.Trial:
    return optuna.create_study().ask()


@pytest.mark.slow
def test_epochs_that_min_updates_adds_are_pruned_too(table, monkeypatch):
    """48 molecules in batches of 64: one update per epoch."""
    trial = new_trial()
    monkeypatch.setattr(trial, "should_prune", lambda: len(trial.study.trials[0].intermediate_values) == 4)
    with pytest.raises(TrialPruned):
        train_here(trial, table, min_updates=6)
    reported = trial.study.trials[0].intermediate_values
    assert list(reported) == [1, 2, 3, 4] and all(value > 0 for value in reported.values())


def fail_after_an_epoch(monkeypatch, error: Exception) -> list:
    """Makes trainings fail in their second epoch; returns the splits that are loaded."""

    def epochs():
        yield Epoch(1, 0.5, 0.25, 1e-3, 100.0, 1.0)
        raise error

    loaded: list = []
    monkeypatch.setattr(module.saved, "Trainer", lambda config, *splits: SimpleNamespace(config=config, epochs=epochs))
    monkeypatch.setattr(module.saved, "load_split", lambda table, split, encodings: loaded.append(split))
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
