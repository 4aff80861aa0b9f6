"""Trainings of the page and their addresses, by a program and with models that only pretend."""

import asyncio
import contextlib
import html
import io
import shlex
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.testclient import TestClient

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces import commands
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.app import make_app
from graphormer_sepnorm.interfaces.web.job_queue import JobLimits, JobQueue
from graphormer_sepnorm.interfaces.web.jobs import ResultStore
from graphormer_sepnorm.interfaces.web.schemas import TrainingChoice
from graphormer_sepnorm.interfaces.web.trainings import MOST_UPLOADS, Trainings
from tests.page import InThisProcess, PretendedService


def start(trainings: Trainings, what: str, choice: TrainingChoice = TrainingChoice()) -> None:  # noqa: B008
    trainings.start(trainings.upload(trainings.keep(io.BytesIO(what.encode()), "my assay.csv")), choice)


def shown(trainings: Trainings) -> list[str]:
    return sorted(path.name for path in trainings.runs.iterdir() if not path.name.startswith("."))


def test_a_run_folder_comes_when_it_is_whole(trainings):
    for name in ("my-assay", "my-assay-2"):
        start(trainings, "train", TrainingChoice(targets=["a b"], quick=True))
        trainings.thread.join()
        progress = trainings.progress
        assert (progress.state, progress.name, progress.percent, progress.left) == ("done", name, 40, "00:10")
        assert progress.phase == "kernel | machine" and progress.sentences == ["learning"]
        words = ["train", "my-assay.csv", "--target-columns", "a b", "--quick", "--out", str(trainings.runs / name)]
        assert shlex.split(progress.command) == ["graphormer-sepnorm", *words]
    assert shown(trainings) == ["my-assay", "my-assay-2"] and trainings.names() == ["my-assay-2", "my-assay"]
    assert trainings.run("my-assay").report.read_text() == "<p>report</p>"
    for name in ("other", "..", ""):
        with pytest.raises(InputError):
            trainings.run(name)


@pytest.mark.parametrize(
    ("what", "words"), [("refuse", "nothing to learn"), ("crash", "terminal"), ("die", f"signal {int(signal.SIGKILL)}")]
)
def test_a_failed_training_leaves_a_reason_and_nothing_else(trainings, what, words):
    start(trainings, what)
    trainings.thread.join()
    assert trainings.progress.state == "failed" and words in trainings.progress.problem
    assert shown(trainings) == [] and not list(trainings.folder.glob("*/*/"))


def test_one_training_at_a_time_which_can_be_cancelled(trainings):
    start(trainings, "sleep")
    with pytest.raises(InputError):
        start(trainings, "train")
    while not trainings.progress.percent:
        time.sleep(0.01)
    process = trainings.progress.process
    trainings.cancel()
    assert process.returncode and trainings.progress.state == "cancelled" and not trainings.is_training
    assert shown(trainings) == [] and not list(trainings.folder.glob("*/*/"))
    start(trainings, "train")
    trainings.thread.join()
    trainings.cancel()
    assert trainings.progress.state == "done" and shown(trainings) == ["my-assay"]


def test_what_a_killed_page_leaves_is_removed_by_the_next_one(trainings):
    (trainings.runs / ".training-dead" / "1" / "assay").mkdir(parents=True)
    start(trainings, "sleep")
    other = Trainings(trainings.runs)
    assert not (trainings.runs / ".training-dead").exists() and trainings.folder.exists()
    other.close()
    trainings.close()
    assert list(trainings.runs.iterdir()) == [] and trainings.progress.state == "cancelled"


def test_uploads_are_tables_and_the_last_ones_are_kept(trainings):
    for name in ("a.smi", "a.exe", ""):
        with pytest.raises(InputError):
            trainings.keep(io.BytesIO(b""), name)
    numbers = [trainings.keep(io.BytesIO(b""), "../-.csv") for _ in range(MOST_UPLOADS + 1)]
    assert trainings.upload(numbers[1]).name == "table.csv"
    assert trainings.upload(numbers[1]).parents[1] == trainings.folder
    with pytest.raises(InputError):
        trainings.upload(numbers[0])


CHOICES = [
    TrainingChoice(targets=["y", "a 'quoted\" name"], feature_columns=["pH"], scale="log10", quick=True),
    TrainingChoice(targets=["-y"], task="regression", scale="nM", split="time", split_column="date", parents=True),
    TrainingChoice(targets=["y"], smiles_column="molecule", decimal="comma", split="butina", split_column="x"),
]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_command_reads_what_was_chosen(choice, monkeypatch, tmp_path):
    found = {}

    def remember(path, content, given, task, seed):
        found.update(given=given, task=task)
        raise InputError("enough")

    monkeypatch.setattr("graphormer_sepnorm.interfaces.commands.train.detected", remember)
    monkeypatch.setattr("graphormer_sepnorm.interfaces.commands.train.read_whole", lambda *_: None)
    with pytest.raises(InputError, match="enough"):
        commands.app(["train", "t.csv", *choice.arguments(), "--out", "o"], standalone_mode=False)
    assert found == {"given": choice.given(), "task": choice.task or None}


RINGS = "\n".join(f"C1{'C' * number}C1,{number},{number % 3}" for number in range(1, 40))
TABLE = f"smiles,<b>y</b>,pH\n{RINGS}\nC1CC,1,2\nCC,none,train"  # its last word is for the pretended program
CHOICE = {"targets": ["<b>y</b>"], "feature_columns": ["pH"], "split": "random", "quick": "true"}


@pytest.fixture
def queue(tmp_path):
    def open_worker(names: list[str]) -> InThisProcess:
        if "broken" in names:
            raise InputError("it cannot be loaded")
        models = PretendedService()
        facts = models.facts().model_copy(update={"model": " ".join(names or ["first"])})
        models.facts = lambda: facts
        return InThisProcess(models)

    limits = JobLimits(upload_bytes=100_000, rows=50)
    with contextlib.closing(JobQueue(open_worker, limits, ResultStore(tmp_path / "store"))) as queue:
        yield queue


@pytest.fixture
def page(queue, trainings):
    app = make_app(queue, trainings=trainings)
    return TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)


def upload(page: TestClient, content: str = TABLE, name: str = "assay.csv") -> str:
    answer = page.post("/train", files={"file": (name, content)})
    assert answer.status_code == 303
    return answer.headers["location"]


@pytest.mark.slow
def test_from_a_table_to_a_model_on_the_same_page(page, trainings):
    address = upload(page)
    whole, part = page.get(address).text, page.get(address, params=CHOICE, headers={"hx-request": "true"}).text
    assert "&lt;b&gt;y&lt;/b&gt;" in whole and "<b>y" not in whole + part and "<form" not in part
    assert "41 rows, 2 of them skipped" in part
    command = html.unescape(part.partition("<pre><code>")[2].partition("</code>")[0])
    words = ["--target-columns", "<b>y</b>", "--split", "random", "--feature-columns", "pH", "--quick"]
    words = ["graphormer-sepnorm", "train", "assay.csv", *words, "--out", str(trainings.runs / "assay")]
    assert shlex.split(command) == words
    assert page.post(address, data=CHOICE).headers["location"] == "/train"
    trainings.thread.join()
    status = page.get("/trainings/status").text
    assert command in html.unescape(status) and "hx-get" not in status and "learning" in status
    report = page.get("/trainings/assay/report")
    assert report.text == "<p>report</p>" and "sandbox" in report.headers["content-security-policy"]
    assert page.post("/models", data={"name": "assay"}).headers["location"] == "/"
    assert page.get("/api/model").json()["model"] == str(trainings.runs / "assay")
    assert page.post("/models").status_code == 303 and page.get("/api/model").json()["model"] == "first"
    for address in ("/train/0", "/trainings/nothing/report", "/trainings/..%2f/report"):
        assert page.get(address).status_code in (404, 422)
    assert page.post("/models", data={"name": "nothing"}).status_code == 422
    assert page.post("/trainings/cancel").headers["location"] == "/train"


@pytest.mark.parametrize(
    ("content", "choice"),
    [(TABLE, {"targets": ["other"]}), (TABLE, {}), (TABLE * 2, CHOICE), ("smiles,y\nC,1", {"targets": ["y"]})],
)
def test_what_cannot_be_trained_on_starts_nothing(page, trainings, content, choice):
    address = upload(page, content)
    answer = page.post(address, data=choice)
    assert answer.status_code == 422 and "problem" in answer.text and trainings.progress is None
    is_read = content != TABLE * 2  # which is too large
    assert (f'<form action="{address}"' in answer.text) == is_read == ('id="molecules"' not in answer.text)


def test_of_choices_that_came_meanwhile_only_the_last_is_looked_at(queue, trainings, monkeypatch):
    looked, asked = [], []
    client = AsyncClient(transport=ASGITransport(make_app(queue, trainings=trainings)), base_url="http://a")

    async def ask(question, *details):
        looked.append(details[-1].targets)
        while len(asked) < 3:
            await asyncio.sleep(0.001)
        return schemas.TableLook([], problem="enough")

    async def choose(name):
        return (await client.get("/train/0", params={"targets": name})).status_code

    async def choose_all():
        return await asyncio.gather(*map(choose, "abc"))

    monkeypatch.setattr(queue, "ask", ask)
    monkeypatch.setattr(trainings, "upload", lambda number: asked.append(number) or Path("assay.csv"))
    assert asyncio.run(choose_all()) == [200, 409, 200] and looked == [["a"], ["c"]]


def test_models_stay_while_tables_are_computed_or_others_cannot_be_loaded(queue, page):
    with pytest.raises(InputError, match="loaded"):
        queue.use(["broken"])
    computing = threading.Event()
    queue.worker.models.predict = lambda rows, options: computing.wait() and []
    number = page.post("/api/tables", json={"smiles": ["C"]}).json()["id"]
    with pytest.raises(InputError, match="computed"):
        queue.use(["second"])
    assert page.get("/api/model").json()["model"] == "first"
    assert page.delete(f"/api/tables/{number}").json()["state"] == "cancelled"
    computing.set()
    queue.use(["second"])
    assert page.get("/api/model").json()["model"] == "second"
    assert page.get(f"/api/tables/{number}").status_code == 404


def test_a_table_that_comes_during_an_exchange_is_predicted_by_the_new_models(queue, page, monkeypatch):
    def open_slowly(models):
        opening.set()
        assert both_sent.wait(60)
        return opened(models)

    opened, opening, both_sent = queue.opened, threading.Event(), threading.Event()
    earlier = queue.submit(io.BytesIO(b"smiles,b\nC,CC\n"), ".csv", "a.csv", schemas.Options())
    while not earlier.is_stored:
        time.sleep(0.01)
    monkeypatch.setattr(queue, "opened", open_slowly)
    with ThreadPoolExecutor() as threads:
        exchange = threads.submit(queue.use, ["second"])
        assert opening.wait(60)
        sent = threads.submit(page.post, "/tables", data={"text": "smiles\nCCC"})
        again = threads.submit(page.post, f"/tables/{earlier.number}/again", data={"smiles_column": "b"})
        wait([sent, again], 0.3)  # they have the time to come into the queue
        both_sent.set()
    exchange.result()
    assert again.result().status_code == 422
    address = f"/api{sent.result().headers['location']}"
    while (status := page.get(address)).status_code == 200 and status.json()["state"] in ("waiting", "computing"):
        time.sleep(0.01)
    assert status.json()["state"] == "done"
