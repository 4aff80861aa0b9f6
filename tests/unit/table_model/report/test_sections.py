"""What to do with the model, by hand; a whole report in ``test_write``."""

from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.report.sections import use_section
from tests.unit.table_model.report.conftest import reported


def test_commands_can_be_copied_whatever_the_folder_is_called(tmp_path):
    coverage = {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}
    found = use_section(reported({"trust": {"coverage": coverage}}, run=RunFolder(tmp_path / "it's mine")))
    predict, evaluate, code = found.commands
    folder = f"'{tmp_path}/it'\"'\"'s mine'"
    assert predict == f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv --interval 0.8 --domain"
    assert evaluate == f"graphormer-sepnorm evaluate {folder}"
    compile(code, "report", "exec")
    assert "interval=0.8" in code
    assert "--interval" not in use_section(reported({"trust": {}})).commands[0]
