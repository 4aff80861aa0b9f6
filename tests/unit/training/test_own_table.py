import pytest

from graphormer_sepnorm.datasets.benchmarks import sample_table
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.tables.labels import TableOptions
from graphormer_sepnorm.training.own_table import Plan, train_folds, train_table
from tests.tiny import tiny_model


@pytest.mark.parametrize(("members", "folder"), [(1, "."), (3, "model-2")])
def test_a_folder_that_holds_a_run_is_refused_before_the_table_is_read(tmp_path, members, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "config.json").touch()
    with pytest.raises(InputError, match="already holds a run"):
        train_table(TableOptions("nowhere.csv", ("logp",)), tiny_model()[1], tmp_path, Plan(members))


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("begun", "members", "folds"), [(3, 2, 0), (2, 3, 0), (3, 1, 0), (2, 2, 5)])
def test_another_size_of_ensemble_is_refused_before_the_table_is_read(tmp_path, begun, members, folds, resume):
    RunFolder(tmp_path).begin_parts(Parts("model", begun))
    options, config = TableOptions("nowhere.csv", ("logp",), folds=folds), tiny_model()[1]
    with pytest.raises(InputError, match=f"holds an ensemble of {begun} models: go on with --ensemble {begun}"):
        (train_folds if folds else train_table)(options, config, tmp_path, Plan(members, resume=resume))
    assert [path.name for path in tmp_path.iterdir()] == ["parts.json"]


def test_a_table_that_cannot_be_used_leaves_nothing(tmp_path):
    (tmp_path / "table.csv").write_text("smiles,y\nCCO,1\n")
    with pytest.raises(InputError, match="has no column 'logp'"):
        train_table(TableOptions(str(tmp_path / "table.csv"), ("logp",)), tiny_model()[1], tmp_path / "run", Plan())
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(("members", "folder"), [(1, "."), (2, "model-0")])
@pytest.mark.parametrize("resume", [False, True])
def test_nothing_is_written_into_a_folder_that_another_process_trains_in(tmp_path, members, folder, resume):
    sample_table()[:200].to_csv(tmp_path / "molecules.csv", index=False)
    options = TableOptions(str(tmp_path / "molecules.csv"), ("penalized_logp",), split="random")
    busy = RunFolder(tmp_path / "run" / folder)
    with busy.locked(), pytest.raises(InputError, match="another process is training in"):
        train_table(options, tiny_model()[1], tmp_path / "run", Plan(members, resume=resume))
    assert list(busy.path.iterdir()) == []
