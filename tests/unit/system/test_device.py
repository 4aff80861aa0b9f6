import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.analyze import analyze_run
from graphormer_sepnorm.predict.predictors import Predictor, load_embedder, load_networks
from graphormer_sepnorm.system import distributed, progress
from graphormer_sepnorm.system.device import Compute, autocast, cached, choose, computing, current, find_device
from graphormer_sepnorm.system.progress import AS_LINES, CURRENT, MARK, begin, phases, say, tracked
from graphormer_sepnorm.system.signals import END_WITH_INPUT
from graphormer_sepnorm.training.experiment import evaluate_run
from tests.tiny import save_tiny

NOWHERE = Compute(torch.device("meta"))  # a model moved there cannot give numbers


def test_names_of_gpus(monkeypatch):
    for name, fact in {"is_available": True, "device_count": 2, "is_bf16_supported": False}.items():
        monkeypatch.setattr(torch.cuda, name, lambda fact=fact: fact)
    names = ("auto", "cuda", "cuda:1", "cpu")
    assert [str(find_device(name)) for name in names] == ["cuda:0", "cuda:0", "cuda:1", "cpu"]
    with pytest.raises(InputError, match="no device cuda:2: PyTorch finds 2 CUDA GPUs, from cuda:0 on"):
        find_device("cuda:2")
    with pytest.raises(InputError, match="cuda:0 does not support bfloat16"):
        choose("auto", "bfloat16")
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert [str(find_device(name)) for name in ("auto", "cuda")] == ["cuda:1", "cuda:1"]
    with pytest.raises(InputError, match="is for one process"):
        find_device("cuda:0")


def test_a_missing_device_gives_a_sentence(monkeypatch):
    for where in (torch.cuda, torch.backends.mps):
        monkeypatch.setattr(where, "is_available", lambda: False)
    absent = "no device"
    problems = {"cuda": "cuda:0: PyTorch finds no CUDA GPU", "cuda:3": absent, "mps": absent, "cuda:": "unknown"}
    for name, problem in problems.items():
        with pytest.raises(InputError, match=problem):
            find_device(name)


def test_what_is_current_ends_with_its_block():
    with computing(NOWHERE):
        assert current() is NOWHERE
        with computing(Compute(torch.device("cpu"), "bfloat16")), current().arithmetic():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        assert current() is NOWHERE
    assert current() == choose()


@pytest.mark.parametrize("precision", ["float32", "32-true", "bfloat16", "bf16-mixed"])
def test_the_numbers_of_a_precision_by_its_names(precision):
    with autocast(precision, torch.device("cpu")):
        found = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    assert found == (torch.bfloat16 if precision.startswith("bf") else torch.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("run"), featurizer="zinc", targets=("penalized_logp",))


@pytest.mark.slow
def test_scores_and_measures_are_computed_on_the_device(run):
    with computing(NOWHERE):
        with pytest.raises(RuntimeError, match="meta"):
            evaluate_run(run)
        with pytest.raises(RuntimeError, match="meta"):
            analyze_run(run)
        assert Predictor(load_networks([run])).device == load_embedder(str(run)).device == NOWHERE.device


@pytest.fixture
def second_of_three(monkeypatch):
    for name, value in {"TORCHELASTIC_RUN_ID": "run", "RANK": "1", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)


def test_a_process_on_its_own_is_the_first_of_one(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "5")  # another launcher's, not for us
    assert (distributed.rank(), distributed.num_processes()) == (0, 1)
    rows = np.array([[1.0, 2.0]], np.float32)
    assert distributed.add_up(rows) is rows
    assert distributed.mean(torch.tensor(3.0)).item() == 3.0
    assert distributed.share([4, 5, 6]) == [4, 5, 6]


def test_a_process_of_several_has_its_share(second_of_three):
    assert (distributed.rank(), distributed.num_processes()) == (1, 3)
    assert distributed.share(list(range(8))) == [1, 4, 7]
    assert distributed.share(np.arange(8)).tolist() == [1, 4, 7]
    assert distributed.share([0]) == []


def test_gradients_are_averaged_over_processes(monkeypatch, second_of_three):
    """The others have 2 and 4 times the gradients of this one; frozen parameters have none."""
    monkeypatch.setattr(distributed, "all_reduce", lambda whole: whole.mul_(1 + 2 + 4))
    model, frozen = nn.Linear(2, 1), nn.Linear(1, 1).requires_grad_(False)
    model.weight.grad, model.bias.grad = torch.tensor([[3.0, 30.0]]), torch.tensor([6.0])
    distributed.average_gradients(nn.Sequential(model, frozen))
    assert (model.weight.grad.tolist(), model.bias.grad.tolist()) == ([[7.0, 70.0]], [14.0])
    assert frozen.weight.grad is None


@pytest.mark.parametrize(("writable", "asked"), [(True, [True]), (False, [True, False])])
def test_a_cache_is_used_if_it_can_be_written(writable, asked):
    wishes = []

    def compiler(cache):
        def compile_(function):
            wishes.append(cache)
            if cache and not writable:
                raise RuntimeError("cannot cache function: no locator available")
            return lambda x: function(x) + 1

        return compile_

    assert cached(compiler, abs)(-4) == 5
    assert wishes == asked


@pytest.fixture
def terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    real = progress.tqdm
    monkeypatch.setattr(progress, "tqdm", lambda **options: real(**options | {"file": screen, "mininterval": 0}))
    return screen


def test_a_bar_moves_through_phases_by_their_costs(terminal):
    places = []
    with phases({"reading": 30, "fitting": 10}):
        bar = CURRENT.get().bar
        begin("reading")
        for _ in tracked(range(4), 4, share=0.5):
            places.append(bar.n)
        assert list(tracked("abc", 3, share=0.9)) == ["a", "b", "c"] and bar.n == 30, "never beyond its end"
        begin("fitting")
        places.append(bar.n)
        begin("reading")
        assert bar.n == bar.total == 40
    assert places == [0, 3.75, 7.5, 11.25, 30]
    assert "reading" in terminal.getvalue() and "left" in terminal.getvalue()
    assert CURRENT.get() is None


def test_a_program_reads_phases_as_lines(monkeypatch, capsys):
    monkeypatch.setenv(AS_LINES, "1")
    with phases({"a|b": 1, "c": 3}):
        begin("a|b")
        say(["a sentence"])
        begin("c")
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert "a sentence" in lines
    found = [line.removeprefix(MARK).rsplit("|", 2)[:2] for line in lines if line.startswith(MARK)]
    assert list(dict.fromkeys(map(tuple, found))) == [("", "0"), ("a|b", "0"), ("c", "25")]


@pytest.mark.parametrize(("name", "code", "words"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_leaving_at_once_says_so_in_a_line_and_runs_nothing_more(name, code, words):
    program = (
        "import os, signal\nfrom graphormer_sepnorm.system.signals import leaving_at_once\n"
        f"with leaving_at_once():\n    try:\n        os.kill(os.getpid(), signal.{name})\n        signal.pause()\n"
        "    finally:\n        print('finally')"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", f"{words}\n")


def test_a_command_ends_with_the_process_that_holds_its_input():
    program = "import signal\nfrom graphormer_sepnorm.system.signals import *\nend_with_input()\nsignal.pause()"
    env = os.environ | {END_WITH_INPUT: "1"}
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env=env) as process:
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(60) == -signal.SIGTERM
