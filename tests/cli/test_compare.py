"""The command ``compare``."""

import numpy as np

from tests.unit.table_model.test_compare import Y, write_run


def test_two_runs_from_the_shell(command, tmp_path):
    runs = [write_run(tmp_path / "a", Y + 0.5), write_run(tmp_path / "b", np.zeros(40))]
    code, result, messages = command("compare", *runs, "--plot", tmp_path / "difference.png")
    assert code == 0 and f"{runs[0]}" in messages and list(result["targets"]["y"]["runs"]) == [str(run) for run in runs]
    assert (tmp_path / "difference.png").exists()


def test_bad_input_is_one_sentence(command, tmp_path):
    run = write_run(tmp_path / "a", Y)
    other = write_run(tmp_path / "b", Y, smiles="CC")
    for arguments, message in (
        ([run, tmp_path], "has no test predictions"),
        ([run, other], "have different test rows"),
        ([run, other, "--plot", tmp_path / "a.gif"], "a plot is written as .png, .svg, .pdf"),
    ):
        code, _, messages = command("compare", *arguments)
        assert code == 2 and message in messages and messages.count("\n") == 1
    assert not (tmp_path / "a.gif").exists()
