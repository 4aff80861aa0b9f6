"""What to do with the model, by hand; a whole report in ``test_write``."""

import json
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from graphormer_sepnorm.config import config_to_json
from graphormer_sepnorm.predict.classes import ClassSets
from graphormer_sepnorm.report.charts import Axis, Chart
from graphormer_sepnorm.report.sections import training_section, use_section
from graphormer_sepnorm.runs.folder import Parts, RunFolder
from graphormer_sepnorm.system.progress import AS_LINES
from tests.tiny import tiny_model
from tests.unit.report.conftest import fitted, reported


def test_commands_can_be_copied_whatever_the_folder_is_called(tmp_path):
    coverage = {"0.5": {"a": 0.5}, "0.8": {"a": 0.8}, "0.9": {"a": None}}
    run = RunFolder(tmp_path / "it's mine")
    predict, suggest, explain, serve, evaluate, code = used({"trust": {"coverage": coverage}}, run=run)
    folder = f"'{tmp_path}/it'\"'\"'s mine'"
    assert predict == f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv --interval 0.8 --domain"
    assert suggest == f"graphormer-sepnorm suggest {folder} molecules.csv --target a -n 50 -o next.csv"
    assert explain == f'graphormer-sepnorm explain {folder} "c1ccccc1O" -o atoms.svg'
    assert serve == f"graphormer-sepnorm serve {folder}" and evaluate.startswith(
        f"graphormer-sepnorm evaluate {folder} "
    )
    compile(code, "report", "exec")
    assert "interval=0.8" in code
    assert "--interval" not in used({"trust": {}})[0]


def test_a_training_on_the_page_names_no_command(monkeypatch):
    monkeypatch.setenv(AS_LINES, "1")
    assert used({"trust": {}}) == []


def used(result: dict, *task, columns: tuple[str, ...] = (), trust: dict | None = None, **parts) -> list[str]:
    """The commands and the code to copy."""
    page = reported(result, *task, **parts)
    known = {"conditions": SimpleNamespace(columns=columns), "task": page.task}
    model = fitted([[1.0]], trust=trust or {}, model=known).model
    return [command.text for command in use_section(page.run.path, model, page.confidence).commands]


@pytest.mark.parametrize(("columns", "explained"), [((), True), (("pH",), False)])
def test_one_molecule_is_explained_only_without_conditions(columns, explained):
    commands = used({"trust": {}}, "regression", ("a",), columns=columns)
    assert any(" explain " in command for command in commands) == explained
    assert not any("--target" in command for command in commands), "there is one target"


@pytest.mark.parametrize("sets", [None, ClassSets(np.zeros((1, 1, 2)))])
def test_a_level_is_given_for_classes_with_sets(sets):
    predict, *_, code = used({"trust": {}}, "classification", ("a",), trust={"class_sets": sets})
    assert ("--interval 0.9" in predict) == ("interval=0.9" in code) == (sets is not None)


def test_the_curves_of_the_networks_are_drawn_from_their_metrics(tmp_path):
    run = RunFolder(tmp_path)
    run.begin_parts(Parts("model", 2))
    folder = run.member(0).path
    folder.mkdir()
    lines = [{"epoch": epoch, "train_loss": 4 / epoch, "val_metric": 2} for epoch in (1, 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert training_section(reported({"members": ["networks"]}, run=run)).words[0].startswith("Orange: ")
    run.member(0).config.write_text(config_to_json(tiny_model()[1]))
    section = training_section(reported({"members": ["kernel", "networks"]}, run=run))
    assert re.match(r"Each network: \d+ epochs, batches of \d+, .+, seed 0\. Orange: ", section.words[0])
    (chart,) = section.charts
    drawing = Chart("", *(Axis.around("", np.array(ends)) for ends in ([1, 2], [2.0, 4])))
    for kind, values in {"mean": (4, 2), "trend": (2, 2)}.items():
        (line,) = ElementTree.fromstring(chart.svg).findall(f"polyline[@class='{kind}']")
        ends = [f"{drawing.across(x):.1f},{drawing.up(y):.1f}" for x, y in zip((1, 2), values, strict=True)]
        assert line.get("points").split() == ends
    assert training_section(reported({"members": ["kernel"]}, run=run)) is None
