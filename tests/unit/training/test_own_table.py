import pytest

from graphormer_sepnorm.data.labels import TableOptions
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.training.own_table import train_table
from tests.tiny import tiny_model


@pytest.mark.parametrize(("members", "folder"), [(1, "."), (3, "model-2")])
def test_a_folder_that_holds_a_run_is_refused_before_the_table_is_read(tmp_path, members, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "config.json").touch()
    with pytest.raises(InputError, match="already holds a run"):
        train_table(TableOptions("nowhere.csv", ("logp",)), tiny_model()[1], tmp_path, members)


def test_a_table_that_cannot_be_used_leaves_nothing(tmp_path):
    (tmp_path / "table.csv").write_text("smiles,y\nCCO,1\n")
    with pytest.raises(InputError, match="has 0 columns 'logp'"):
        train_table(TableOptions(str(tmp_path / "table.csv"), ("logp",)), tiny_model()[1], tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
