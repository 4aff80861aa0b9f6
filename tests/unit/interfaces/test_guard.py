import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from graphormer_sepnorm import GraphormerRegressor
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import quick
from graphormer_sepnorm.interfaces.guard import guarded, in_first_process
from graphormer_sepnorm.runs.arrays import load_arrays, save_arrays


@pytest.fixture
def second_of_two(monkeypatch):
    for name, value in {"TORCHELASTIC_RUN_ID": "run", "RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)


def fail(error: Exception):
    raise error


def test_bad_input_is_a_sentence_and_exit_code_2(capsys):
    errors = {
        "error: no such file; see --smiles-column": InputError("no such file", "smiles_column"),
        "error: the GPU is out of memory": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    }
    for words, error in errors.items():
        with pytest.raises(SystemExit) as end:
            guarded(partial(fail, error))
        output, message = capsys.readouterr()
        assert (end.value.code, output, message.count("\n")) == (2, "", 1) and message.startswith(words)


@pytest.mark.parametrize("error", [ValueError("a defect"), RuntimeError("a defect")])
def test_defects_are_not_hidden(error):
    with pytest.raises(type(error), match="a defect"):
        guarded(lambda: fail(error))


def read_during(number: int, path: Path, monkeypatch: pytest.MonkeyPatch):
    """Reads tensors while a signal comes, of which PyTorch makes a ValueError."""
    save_arrays(path, {"a": np.zeros(3)}, {})
    monkeypatch.setattr(torch.UntypedStorage, "__len__", lambda storage: os.kill(os.getpid(), number) or 0)
    load_arrays(path)


@pytest.mark.parametrize("is_reading", [False, True])
@pytest.mark.parametrize(("number", "line"), [(signal.SIGINT, "interrupted\n"), (signal.SIGTERM, "terminated\n")])
def test_a_signal_is_a_line_and_its_exit_code(capsys, number, line, is_reading, tmp_path, monkeypatch):
    before = signal.getsignal(number)
    reading = partial(read_during, number, tmp_path / "a.safetensors", monkeypatch)
    with pytest.raises(SystemExit) as end:
        guarded(reading if is_reading else lambda: os.kill(os.getpid(), number))
    assert end.value.code == 128 + number and signal.getsignal(number) is before
    assert capsys.readouterr() == ("", line)


def test_of_several_processes_the_first_prints(second_of_two, capsys):
    guarded(lambda: print("result"))
    with pytest.raises(SystemExit):
        guarded(lambda: fail(InputError("no such file")))
    assert capsys.readouterr() == ("", "error in process 1: no such file\n")


def test_a_command_for_the_first_process_does_nothing_in_others(monkeypatch, second_of_two):
    calls = []
    command = in_first_process(lambda *, model: calls.append(model))
    command(model="x")
    monkeypatch.setenv("RANK", "0")
    command(model="y")
    assert calls == ["y"]


def unused(**given) -> list[str]:
    return quick.unused_parameters(GraphormerRegressor(**given).get_params(), GraphormerRegressor().get_params())


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, []),
        ({"networks": 3, "metric": "rmse", "balance": True, "pretrained": "foundation-mini"}, []),
        ({"split": "random", "random_state": 1, "strip_salts": True, "standardize": "parent"}, []),
        ({"epochs": np.int64(3)}, ["epochs"]),
        ({"weights": np.array([1.0, 2.0]), "loss": "mse", "forest": False}, ["forest", "loss", "weights"]),
        ({"weights": []}, []),
        ({"recipe": "slim"}, ["recipe"]),
        ({"settings": {"train.start_from": "zinc", "train.lr": 0.1}}, ["settings train.lr"]),
        ({"pretrained": "foundation-mini", "frozen_layers": 2}, ["frozen_layers"]),
    ],
)
def test_parameters_without_an_effect(given, names):
    assert unused(**given) == names
