import pytest

from graphormer_sepnorm.data.load import load_split
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.training.recorder import Recorder, training_alone, words
from graphormer_sepnorm.training.trainer import Trainer
from tests.robustness.tiny_run import tiny_config


@pytest.fixture
def recorder(tmp_path) -> Recorder:
    config = tiny_config(epochs=2)
    splits = (load_split("tiny", split, config.model.encodings) for split in ("train", "val"))
    return Recorder(Trainer(config, *splits), RunFolder(tmp_path / "run"))


def test_an_epoch_is_on_the_disk_when_it_is_given(recorder, capsys):
    for number, epoch in enumerate(recorder.epochs(), 1):
        assert [line["epoch"] for line in recorder.run.read_metrics()] == list(range(1, number + 1))
        assert recorder.run.read_metrics()[-1]["val_metric"] == epoch.val_metric
        assert recorder.run.state.exists()
        assert capsys.readouterr().out == words(epoch, recorder.trainer.config) + "\n"


def test_the_facts_are_those_of_the_best_epoch_and_its_weights(recorder):
    facts = recorder.train()
    values = {line["epoch"]: line["val_metric"] for line in recorder.run.read_metrics()}
    assert facts == {"epoch": min(values, key=values.get), "val_metric": min(values.values())}
    _, _, saved = load_model(recorder.run.path)
    assert {name: saved[name] for name in facts} == facts
    assert recorder.run.curves.stat().st_size > 1000


def test_other_processes_write_nothing(recorder, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.training.recorder.distributed.rank", lambda: 1)
    assert len(list(recorder.epochs())) == 2
    assert not recorder.run.path.exists()


def test_one_run_trains_in_a_folder_at_a_time(tmp_path):
    with training_alone(RunFolder(tmp_path), resume=False):
        second = training_alone(RunFolder(tmp_path), resume=False)
        with pytest.raises(InputError, match="another process is training"):
            second.__enter__()
    with training_alone(RunFolder(tmp_path), resume=False):
        pass
