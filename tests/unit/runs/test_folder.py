import json

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import PARTS, Parts, RunFolder, weights_file
from tests.tiny import save_tiny, tiny_model


def test_the_models_of_an_ensemble_are_those_of_its_record(tmp_path):
    """Not those in the folder: one may not have been trained yet, and another may belong to something else."""
    run = RunFolder(tmp_path)
    assert run.parts() is None and run.members() == []
    run.begin_parts(Parts("model", 2))
    for number in (0, 2):
        (tmp_path / f"model-{number}").mkdir()
    assert run.parts() == Parts("model", 2)
    assert [member.path for member in run.members()] == [tmp_path / "model-0", tmp_path / "model-1"]
    with pytest.raises(InputError, match=r"it holds networks, name one of them, such as .*model-0"):
        weights_file(tmp_path)
    assert json.loads(run.record.read_text()) == {"kind": "model", "count": 2}
    run.begin_parts(Parts("model", 2))
    run.record.write_text('{"kind": "model", "count": 0}')
    with pytest.raises(InputError, match=r"parts\.json is damaged"):
        run.members()


@pytest.mark.parametrize(
    ("held", "asked", "sentence"),
    [
        (Parts("model", 3), Parts("model", 2), "holds 3 networks: continue with --ensemble 3, or choose"),
        (Parts("model", 2), Parts("fold", 2), "holds 2 networks: continue with --ensemble 2, or choose"),
        (Parts("fold", 5), Parts("fold", 3), "holds 5 folds: continue with --folds 5, or choose another --out"),
    ],
)
def test_only_the_same_parts_can_be_continued(tmp_path, held, asked, sentence):
    run = RunFolder(tmp_path)
    run.begin_parts(held)
    for check in (run.check_parts, run.begin_parts):
        with pytest.raises(InputError, match=sentence):
            check(asked)
    for resume in (False, True):
        with pytest.raises(InputError, match=f"holds {str(held).partition(':')[0]}"):
            run.check_free(resume)
    run.check_parts(held)


def test_a_folder_with_one_model_does_not_become_an_ensemble(tmp_path):
    run = RunFolder(tmp_path)
    run.begin(tiny_model()[1])
    with pytest.raises(InputError, match="holds one network, which is no part of a table model: choose another --out"):
        run.begin_parts(Parts("model", 3))
    assert not run.record.exists()


def test_one_model_is_a_run_folder_or_its_weights_file(tmp_path):
    save_tiny(tmp_path)
    weights = tmp_path / "model.safetensors"
    assert weights_file(tmp_path) == weights_file(weights) == weights
    assert RunFolder.around(tmp_path).path == RunFolder.around(weights).path == tmp_path
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is not a folder that train wrote: it has no model\.safetensors$"):
        weights_file(tmp_path / "empty")


def test_a_folder_of_runs_names_one_of_them(tmp_path):
    for name in ("a", "q", "r"):
        (tmp_path / name).mkdir()
    save_tiny(tmp_path / "r")
    save_tiny(tmp_path / "q")
    with pytest.raises(InputError, match=r"it holds runs, name one of them, such as .*/q$"):
        weights_file(tmp_path)


def test_a_later_epoch_replaces_what_an_interrupted_run_wrote_of_it(tmp_path):
    run = RunFolder(tmp_path)
    for epoch, loss in ((1, 0.5), (2, 0.4), (3, 0.3), (2, 0.25)):
        run.append_metrics([{"epoch": epoch, "train_loss": loss}])
    assert run.read_metrics() == [{"epoch": 1, "train_loss": 0.5}, {"epoch": 2, "train_loss": 0.25}]


def test_the_saved_score_is_the_one_that_was_written(tmp_path):
    run = RunFolder(tmp_path)
    assert run.saved_test().get("value") is None
    run.write_test({"metric": "mae", "value": 0.5})
    assert run.saved_test().get("value") == 0.5 and run.test.read_text() == '{"metric": "mae", "value": 0.5}\n'
    run.test.write_text('{"value": ')
    with pytest.raises(InputError, match=r"test\.json is damaged"):
        run.saved_test().get("value")


def test_a_folder_with_a_run_can_only_be_resumed(tmp_path):
    run = RunFolder(tmp_path / "run")
    for resume in (False, True):
        run.check_free(resume)
    run.begin(tiny_model()[1])
    assert json.loads(run.config.read_text())["dataset"] == "sample"
    run.check_free(resume=True)
    with pytest.raises(InputError, match="already holds a run: continue it with --resume"):
        run.check_free(resume=False)
    run.config.write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="is not the config of a run, choose another --out"):
        run.check_free(resume=True)
    run.stack.touch()
    with pytest.raises(InputError, match="holds a table model: choose another --out"):
        run.check_free(resume=True)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_table_model_is_not_taken_for_a_network(tmp_path, part):
    save_tiny(tmp_path)
    (tmp_path / part).touch()
    with pytest.raises(InputError, match=rf"has a part of a table model, {part}, but no stack\.safetensors"):
        weights_file(tmp_path)
