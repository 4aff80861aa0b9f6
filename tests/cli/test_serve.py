"""The command that serves the page: started, asked, and closed with Ctrl-C."""

import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.interfaces.commands.serve import address_of, find_token, listening
from graphormer_sepnorm.interfaces.web.jobs import ResultStore, saved_table
from tests.tiny import save_tiny

REPOSITORY = Path(__file__).parents[2]
RUN = [sys.executable, "-c", "from graphormer_sepnorm.interfaces.cli import main; main()", "serve"]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "GRAPHORMER_SEPNORM_KERNELS": "off"}


def start(tmp_path: Path, *options: str) -> subprocess.Popen:
    """A server of a tiny model in a process group of its own."""
    run = save_tiny(tmp_path / "run", featurizer="mol")
    arguments = [*RUN, run, "--port", "0", "--keep", tmp_path / "kept", "--device", "cpu", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, cwd=tmp_path, env=ENVIRONMENT, start_new_session=True, **pipes)


@pytest.mark.slow
def test_asked_and_closed(tmp_path):
    """Ctrl-C: exit code 130, one line, no process left, and the finished table is on the shelf."""
    server = start(tmp_path, "--max-rows", "5")
    try:
        line = server.stdout.readline()
        assert line, server.stderr.read()
        started = json.loads(line)
        with httpx.Client(base_url=started["address"], timeout=60) as client:
            number = client.post("/api/tables", json={"smiles": ["CCO", "C[C"]}).json()["id"]
            while client.get(f"/api/tables/{number}").json()["state"] in ("waiting", "computing"):
                time.sleep(0.1)
            table = client.get(f"/api/tables/{number}/predictions.csv").text
            assert table.splitlines()[0] == "smiles,logp,error" and len(table.splitlines()) == 3
            large = client.post("/api/tables", json={"smiles": ["C"] * 6})
            assert large.status_code == 422 and large.json()["detail"].startswith("the list has 6 molecules")
            assert client.get("/healthz").json() == {"status": "ok", "waiting": 0}
            assert (head := client.head("/api/model")).status_code == 200 and not head.content
        os.killpg(server.pid, signal.SIGINT)
        _, messages = server.communicate(timeout=120)
    finally:
        server.kill()
    assert server.returncode == 130
    assert messages.splitlines()[-1] == f"interrupted; finished tables are kept in {tmp_path / 'kept'}"
    assert "Traceback" not in messages
    assert saved_table(ResultStore(tmp_path / "kept").load(number), ".csv").decode() == table
    wait_for_end(server.pid)


@pytest.mark.slow
def test_the_page_and_the_shell_train_the_same_model(tmp_path):
    """On a real server: a table is looked at and trained on, and its model predicts on the same page."""
    table = "".join((REPOSITORY / "data" / "esol.csv").read_text().splitlines(keepends=True)[:81]) + "C1CC,oops\n"
    server = start(tmp_path, "--runs", "runs")
    try:
        address = json.loads(server.stdout.readline())["address"]
        with httpx.Client(base_url=address, timeout=300) as client:
            looked = client.post("/train", files={"file": ("assay.csv", table)}).headers["location"]
            choice = {"targets": [table.split(",", 2)[1].split("\n")[0]], "split": "random", "quick": "true"}
            understood = client.get(looked, params=choice).text
            assert client.post(looked, data=choice).headers["location"] == "/train"
            while "hx-get" in (status := client.get("/trainings/status").text):
                time.sleep(0.5)
            command = html.unescape(status.partition("<pre><code>")[2].partition("</code>")[0])
            sentences = re.findall("<li>(.*?)</li>", understood)
            assert sentences and sentences == re.findall("<li>(.*?)</li>", status)[: len(sentences)]
            assert "<h1>" in client.get("/trainings/assay/report").text
            assert client.post("/models", data={"name": "assay"}).headers["location"] == "/"
            assert client.get("/api/model").json()["model"] == "assay"
            number = client.post("/api/tables", json={"smiles": ["CCO"]}).json()["id"]
            while client.get(f"/api/tables/{number}").json()["state"] in ("waiting", "computing"):
                time.sleep(0.1)
            assert client.get(f"/api/tables/{number}/rows").json()[0]["predictions"]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=120)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["assay"]
    (tmp_path / "shell").mkdir()
    (tmp_path / "shell" / "assay.csv").write_text(table)
    program, *words = shlex.split(command)
    assert program == "graphormer-sepnorm"
    subprocess.run([*RUN[:-1], *words], cwd=tmp_path / "shell", env=ENVIRONMENT, check=True, capture_output=True)
    for name in ("test.json", "predictions.csv", "table.csv", "skipped.csv"):
        trained = [(tmp_path / place / "runs/assay" / name).read_bytes() for place in ("", "shell")]
        assert trained[0] == trained[1], name


def wait_for_end(group: int) -> None:
    """Waits until no process of the group is left, for a minute at most."""
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a process of the page goes on")


def serve(*arguments) -> None:
    CliRunner().invoke(commands.app, ["serve", *map(str, arguments)], catch_exceptions=False)


def test_a_port_that_is_taken_is_a_sentence():
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken, "127.0.0.1") == f"http://127.0.0.1:{port}"
        with pytest.raises(InputError, match=rf"cannot listen at 127\.0\.0\.1, port {port}"):
            serve("zinc-subset", "--port", port)
    with pytest.raises(InputError, match="cannot listen"):
        listening("no.such.name.invalid", 0)


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "graphormer_sepnorm.interfaces.web.app", raising=False)
    with pytest.raises(InputError, match=r'pip install "\.\[web\]" in the folder of the repository'):
        serve("zinc-subset")


def test_tokens(monkeypatch):
    monkeypatch.delenv("GRAPHORMER_SEPNORM_TOKEN", raising=False)
    assert len(find_token()) > 40 and find_token() != find_token()
    monkeypatch.setenv("GRAPHORMER_SEPNORM_TOKEN", "0123456789abcde-")
    assert find_token() == "0123456789abcde-"
    for bad in ("short", "with a space in it", "0123456789abcdé-", "0123456789abcde;"):
        monkeypatch.setenv("GRAPHORMER_SEPNORM_TOKEN", bad)
        with pytest.raises(InputError, match="or more"):
            find_token()
