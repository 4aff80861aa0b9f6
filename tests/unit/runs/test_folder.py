import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import WEIGHTS, member_paths, weights_file


def make_run(folder):
    folder.mkdir(parents=True)
    (folder / WEIGHTS).touch()
    return folder


def test_weights_are_in_the_folder_or_are_the_file_itself(tmp_path):
    run = make_run(tmp_path / "run")
    assert weights_file(run) == run / "model.safetensors"
    assert weights_file(run / "model.safetensors") == run / "model.safetensors"
    assert weights_file(tmp_path / "not there") == tmp_path / "not there"  # whoever reads it says so


def test_a_folder_without_weights_is_no_run(tmp_path):
    with pytest.raises(InputError, match=r"is not a run folder: it has no model\.safetensors$"):
        weights_file(tmp_path)


def test_an_ensemble_names_one_of_its_runs(tmp_path):
    make_run(tmp_path / "model-0")
    with pytest.raises(InputError, match=r"it is an ensemble, name one of its models, such as .*model-0"):
        weights_file(tmp_path)


def test_members_are_in_the_order_of_their_numbers(tmp_path):
    runs = [make_run(tmp_path / f"model-{number}") for number in (10, 2, 0, 1, 11)]
    assert [path.name for path in member_paths(tmp_path)] == [f"model-{number}" for number in (0, 1, 2, 10, 11)]
    assert member_paths(runs[0]) == [runs[0]]
    assert member_paths(runs[0] / WEIGHTS) == [runs[0] / WEIGHTS]
