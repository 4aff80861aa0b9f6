"""What the addresses answer, with models that only pretend."""

import io
import re
import time
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.app import make_app
from graphormer_sepnorm.interfaces.web.job_queue import JobLimits
from graphormer_sepnorm.interfaces.web.jobs import Job
from graphormer_sepnorm.interfaces.web.pages import as_rounded, as_shown
from graphormer_sepnorm.interfaces.web.reading import read_rows
from graphormer_sepnorm.predict.domain import OTHER_CONDITIONS
from tests.page import ADDED, InThisProcess, PretendedService, open_queue
from tests.tables import write

HTMX = {"hx-request": "true"}
LIMITS = JobLimits(upload_bytes=100_000, rows=1000)


@pytest.fixture(scope="module")
def queue(tmp_path_factory):
    with open_queue(InThisProcess(PretendedService()), tmp_path_factory.mktemp("store"), LIMITS) as queue:
        yield queue


@pytest.fixture(scope="module")
def page(queue):
    return TestClient(make_app(queue), base_url="http://127.0.0.1:8000", follow_redirects=False)


@contextmanager
def page_of(models, folder, **facts):
    """A page of models with other facts."""
    known = models.facts().model_copy(update=facts)
    models.facts = lambda: known
    with open_queue(InThisProcess(models), folder, LIMITS) as queue:
        yield TestClient(make_app(queue), base_url="http://127.0.0.1:8000")


def rows_of(page, *smiles: str, **options) -> str:
    """The rows of a table as the page shows them."""
    number = finished(page, page.post("/api/tables", json={"smiles": smiles, **options}))["id"]
    return page.get(f"/tables/{number}/rows").text


def answering(change) -> PretendedService:
    """Models whose answers are changed, with the SMILES at hand."""
    models = PretendedService()
    predict_one = models.predict_one

    def changed(text: str) -> schemas.MoleculePrediction:
        found = predict_one(text)
        change(found, text)
        return found

    models.predict_one = changed
    return models


def finished(page, answer) -> dict:
    """The progress of a table that was given in, when it is over."""
    assert answer.status_code == 202, answer.text
    return wait(page, answer.json()["id"])


def wait(page, number: str) -> dict:
    for _ in range(3000):
        progress = page.get(f"/api/tables/{number}").json()
        if progress["state"] not in ("waiting", "computing"):
            return progress
        time.sleep(0.02)
    raise AssertionError("it did not come")


def predict(page, *smiles: str) -> dict:
    return finished(page, page.post("/api/tables", json={"smiles": smiles}))


def upload(page, content: bytes, name: str = "molecules.csv"):
    return page.post("/api/tables/file", files={"file": (name, content, "text/csv")})


def test_molecules_as_json(page):
    progress = predict(page, "CCO", "X", "CXe")
    assert progress == {
        "id": progress["id"], "state": "done", "problem": "", "rows": 3, "done": 3, "unreadable": 1, "warned": 1,
        "columns": ["smiles"], "smiles_column": "smiles",
    }  # fmt: skip
    rows = page.get(f"/api/tables/{progress['id']}/rows").json()
    assert [row["row"] for row in rows] == [0, 1, 2] and rows[1]["error"] == "X cannot be read"
    found = rows[2]["predictions"]["length"]
    assert {name: number for name, number in found.items() if number is not None} == {"value": 3, "low": 2, "high": 4}
    assert rows[2]["warning"] == "No training molecule contains Xe." and rows[2]["similarity"] == 0.5
    assert [schemas.RowPrediction.model_validate(row) for row in rows]
    assert [row["row"] for row in page.get(f"/api/tables/{progress['id']}/rows?start=1&count=1").json()] == [1]


def test_a_table_as_an_excel_workbook(page):
    number = finished(page, upload(page, b"smiles,n\nCC,0.50\nX,007\n", "m\u00e9; x.csv"))["id"]
    answer = page.get(f"/api/tables/{number}/predictions.xlsx")
    named = answer.headers["content-disposition"]
    assert named == "attachment; filename*=UTF-8''m%C3%A9%3B%20x-predictions.xlsx"
    book = pytest.importorskip("openpyxl").load_workbook(io.BytesIO(answer.content))
    assert list(book["About"].values) == [("model", "pretended")]
    header, *rows = [dict(enumerate(row)) for row in book.active.values]
    names = {name: place for place, name in header.items()}
    assert [[row[names[name]] for name in ("smiles", "n", "length", "error")] for row in rows] == [
        ["CC", "0.50", 2, None], ["X", "007", None, "X cannot be read"],
    ]  # fmt: skip


def test_the_addresses_for_programs_are_described_with_their_problems(page):
    assert schemas.ModelFacts.model_validate(page.get("/api/model").json()).model == "pretended"
    docs, schema = page.get("/docs"), page.get("/api/openapi.json").json()
    assert "SwaggerUIBundle" in docs.text and "/api/openapi.json" in docs.text
    assert "https://cdn.jsdelivr.net" in docs.headers["content-security-policy"]
    assert {"/api/model", "/api/tables", "/api/tables/file", "/api/tables/{id}"} <= set(schema["paths"])
    assert all(path.startswith("/api/") for path in schema["paths"])
    for methods in schema["paths"].values():
        for what in methods.values():
            assert what["description"]
            problems = {status: answer for status, answer in what["responses"].items() if not status.startswith("2")}
            assert {"400", "401"} <= problems.keys()
            declared = [answer["content"]["application/json"]["schema"] for answer in problems.values()]
            assert all(each == schemas.Problem.model_json_schema() for each in declared)
    assert schema["paths"]["/api/model"]["get"]["responses"].keys() == {"200", "400", "401"}
    sent = page.post("/api/tables", json={"smiles": []}).json()
    assert schemas.Problem.model_validate(sent, extra="forbid").detail.startswith("body.smiles")
    wrong = page.put("/api/tables")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "POST"


def test_the_name_of_a_file_is_no_path(page, queue, tmp_path):
    progress = finished(page, upload(page, b"smiles\nC\n", f"{tmp_path}/taken.csv"))
    assert progress["state"] == "done" and list(tmp_path.iterdir()) == []
    number = finished(page, upload(page, b"smiles\n" + 1001 * b"C\n", "../../<b>.csv"))["id"]
    shown = page.get(f"/tables/{number}").text
    assert "&lt;b&gt;.csv has more than 1000" in shown and "<b>.csv" not in shown and ".." not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["", "/rows", "/predictions.csv", "/predictions.xlsx", "/rows/0/structure.svg", "/rows/0/nearest.svg"]
)
@pytest.mark.parametrize("number", ["0" * 32, "..%2F..%2Fetc%2Fpasswd", "%00", "passwd.csv"])
def test_unknown_tables(page, part, number):
    assert page.get(f"/api/tables/{number}{part}").status_code == page.get(f"/tables/{number}").status_code == 404


def test_an_address_that_does_not_exist_leads_back(page):
    answer = page.get("/tabels/<b>")
    assert answer.status_code == 404 and "/tabels/&lt;b&gt;" in answer.text and '<a href="/">' in answer.text
    answer = page.get("/api/tabels/" + "x" * 200)
    assert answer.status_code == 404 and set(answer.json()) == {"detail"}
    assert answer.json()["detail"].startswith("there is no address /api/tabels/x") and len(answer.text) < 200


def test_a_list_of_molecules_is_a_table_whatever_they_are(page, queue, tmp_path, monkeypatch):
    smiles, sent = ['"', "a,b", "C\nC", "=1+1", "", "smiles", "C;C"], []
    with monkeypatch.context() as patch:
        patch.setattr(queue, "submit", lambda file, *_: sent.append(file.read()) or Job(number="0" * 32))
        page.post("/api/tables", json={"smiles": smiles})
    assert [row.smiles for row in read_rows(write(tmp_path, "a.csv", sent[0]), "a", "", 9).rows] == smiles
    assert page.post("/api/tables", json={"smiles": []}).status_code == 422
    assert page.post("/api/tables", json={"smiles": ["C"] * 1001}).status_code == 422
    assert predict(page, "C", None)["done"] == 2
    for wrong, place in (({"smiles": [1]}, "body.smiles.0"), ({"smiles": ["C"], "intervall": 0.9}, "body.intervall: ")):
        assert page.post("/api/tables", json=wrong).json()["detail"].startswith(place)


def test_unknown_fields_and_endpoints_and_no_confidences_are_refused_at_once(page):
    file = {"file": ("a.csv", b"smiles\nC\n")}
    for fields in ({"bogus": "1"}, {"text": "C"}, {"endpoints": "breadth"}, {"interval": "90"}):
        assert page.post("/api/tables/file", files=file, data=fields).status_code == 422
    for fields in ({"bogus": "1"}, {"interval": "90"}):
        assert page.post("/tables", data={"text": "C", **fields}).status_code == 422
    for fields in ({"endpoints": ["breadth"]}, {"interval": 90}):
        assert page.post("/api/tables", json={"smiles": ["C"], **fields}).status_code == 422
    assert finished(page, page.post("/api/tables/file", files=file, data={"endpoints": "len*"}))["state"] == "done"


def test_a_table_that_is_not_over_is_downloaded_only_if_that_is_asked(page, queue):
    rows = [schemas.TableRow([text], text) for text in ("C", "CC")]
    answers = PretendedService().predict(rows[:1], schemas.Options())
    about = {"number": "a" * 32, "shown": "t.csv", "answers": answers, "state": "computing"}
    job = Job(["smiles"], rows, "smiles", ADDED, **about)
    queue.jobs[job.number] = job
    address = f"/api/tables/{job.number}/predictions"
    refused = page.get(f"{address}.csv")
    assert refused.status_code == 409 and "computing, 1 of 2 rows" in refused.json()["detail"]
    assert f'href="{address}.csv?partial=true"' in page.get(f"/tables/{job.number}").text
    assert len(page.get(f"{address}.csv?partial=true").text.splitlines()) == 2
    job.state = "cancelled"
    assert page.get(f"{address}.csv").headers["rows-done"] == "1 of 2"
    assert page.head(f"{address}.csv").status_code == 200
    table = pytest.importorskip("pyarrow.parquet").read_table(io.BytesIO(page.get(f"{address}.parquet").content))
    assert table.to_pylist()[0]["length"] == 1
    del queue.jobs[job.number]


def test_health_needs_no_token_and_asks_the_worker(queue, monkeypatch):
    page = TestClient(make_app(queue, "a-token-of-16-or-more"), base_url="http://127.0.0.1:8000")
    assert page.get("/healthz").json() == {"status": "ok", "waiting": 0}
    monkeypatch.setattr(queue.worker, "identity", "another model")
    assert page.get("/healthz").status_code == 503
    monkeypatch.undo()
    monkeypatch.setattr(queue.worker, "schedule", Mock(side_effect=InputError("gone")))
    assert page.get("/healthz").status_code == 503


def test_every_address_has_the_prefix_that_a_proxy_takes_away(queue):
    page = TestClient(make_app(queue, root="/admet"), base_url="http://127.0.0.1:8000", follow_redirects=False)
    answer = page.post("/tables", data={"text": "C"})
    address = answer.headers["location"]
    number = wait(page, address.removeprefix("/admet/tables/"))["id"]
    assert page.get("/about/").headers["location"] == "/admet/about"
    assert page.get(f"/tables/{number}/rows").headers["hx-push-url"] == address
    for path in ("/", "/about", "/train", "/docs", f"/tables/{number}", f"/tables/{number}/rows/0", "/enter"):
        shown = page.get(path).text
        addresses = re.findall(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)', shown)
        assert addresses and all(each.startswith("/admet/") for each in addresses), path
    assert page.get("/api/openapi.json").json()["servers"] == [{"url": "/admet"}]
    assert page.get("/static/page.css").status_code == 200


def test_nothing_of_a_table_becomes_html_and_nothing_comes_from_elsewhere(page):
    hostile = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "{{ 7 * 7 }}", "javascript:alert(1)"]
    table = "\n".join([f"smiles,{hostile[1]}", *(f"{each},{each}" for each in hostile)])
    number = finished(page, upload(page, table.encode(), "<img src=x onerror=alert(1)>.csv"))["id"]
    parts = ("", "/rows", "?columns=%3Cscript%3E", "/rows/0", "/rows/0/atoms", "/compare?row=0&row=1")
    for shown in (page.get(f"/tables/{number}{part}").text for part in parts):
        assert not re.search(r"<script>|<img src=x|href=.javascript|>49<", shown)
    shown = page.get(f"/tables/{number}/rows").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown and "{{ 7 * 7 }}" in shown
    for path in ("/", "/about", "/static/page.css", "/static/page.js"):
        assert not re.search(r"""(src|href|import|url)\W{1,3}(https?:)?//""", page.get(path).text), path


def test_rows_are_sorted_and_filtered(page):
    number = predict(page, "CCC", "X", "CXe", "C")["id"]
    status = page.get(f"/tables/{number}/status?seen=0", headers=HTMX)
    assert status.headers["hx-trigger"] == "rows-changed" and "every 1s" not in status.text
    query = "?sort=length&order=descending&only=predicted"
    answer = page.get(f"/tables/{number}/rows{query}")
    assert re.findall(r'<th scope="row">(\d+)<', answer.text) == ["1", "3", "4"]
    assert answer.headers["hx-push-url"] == f"/tables/{number}{query}"
    assert "hx-push-url" not in page.get(f"/tables/{number}/rows", headers={"hx-source": "div#rows"}).headers
    for wrong in ("rows?only=none", "rows?count=1001", "rows?start=-1", "rows/x/structure.svg"):
        assert page.get(f"/{'' if 'only' in wrong else 'api/'}tables/{number}/{wrong}").status_code == 422


def test_a_molecule_has_a_page_between_its_neighbours(page):
    number = predict(page, "CCO", "X", "C")["id"]
    shown = page.get(f"/tables/{number}/rows/2?sort=length&order=descending").text
    assert "<h1>Row 3</h1>" in shown and f"/api/tables/{number}/rows/2/structure.svg" in shown
    ways = re.findall(r'href="(\S+)">(Back|Previous|Next)', shown)
    query = "?sort=length&amp;order=descending"
    assert ways == [(f"/tables/{number}{query}", "Back"), (f"/tables/{number}/rows/0{query}", "Previous"),
                    (f"/tables/{number}/rows/1{query}", "Next")]  # fmt: skip
    assert "X cannot be read" in page.get(f"/tables/{number}/rows/1").text
    assert page.get(f"/tables/{number}/rows/3").status_code == page.get(f"/tables/{number}/rows/-1").status_code == 404


def test_two_columns_of_one_name_have_their_values_and_a_molecule_its_name(page):
    number = finished(page, upload(page, b"smiles,IC50,IC50\nCC,5.2,7.1\n"))["id"]
    (row,) = page.get(f"/api/tables/{number}/rows").json()
    assert row["fields"] == {"smiles": "CC", "IC50": "5.2", "IC50 (2)": "7.1"}
    assert "IC50: <b>5.2</b>" in page.get(f"/tables/{number}").text
    number = finished(page, upload(page, b"logP,smiles,Compound ID\n1.2,CC,<b>ethane\n3,CCC, \n"))["id"]
    for row, title in enumerate(("&lt;b&gt;ethane", "Row 2")):
        shown, atoms = (page.get(f"/tables/{number}/rows/{row}{part}").text for part in ("", "/atoms"))
        assert f"<h1>{title}</h1>" in shown and f'tabindex="-1">{title}: atoms' in atoms
    number = finished(page, upload(page, b"smiles,Drug,assay\nCC,ethane,x\nC,7,x\nN,twice,x\nO,twice,x\n"))["id"]
    titles = [re.findall("<h1>(.*)</h1>", page.get(f"/tables/{number}/rows/{row}").text) for row in range(4)]
    assert titles == [["ethane"], ["Row 2"], ["Row 3"], ["Row 4"]]


def test_the_column_of_molecules_is_chosen_on_the_page(page):
    progress = finished(page, upload(page, b"mol,name\nCC,a\nX,b\n"))
    assert (progress["state"], progress["smiles_column"]) == ("failed", "")
    address = f"/tables/{progress['id']}"
    shown = page.get(address).text
    assert '<option value="mol">mol</option>' in shown and "--" not in shown
    refused = [page.get(f"/api{address}/{what}") for what in ("rows", "predictions.csv", "predictions.xlsx")]
    reason = {"detail": "the table has no predictions: choose the column of molecules.csv"}
    assert [(answer.status_code, answer.json()) for answer in refused] == [(409, reason)] * 3
    assert page.post(f"{address}/cancel").headers["location"] == address
    answer = page.post(f"{address}/again", data={"smiles_column": "mol"})
    again = wait(page, answer.headers["location"].rpartition("/")[2])
    shown = page.get(f"/tables/{again['id']}").text
    assert "2 of 2 molecules computed" in shown and "1 of them without a prediction" in shown
    assert (again["done"], again["unreadable"], again["smiles_column"]) == (2, 1, "mol")
    assert page.post(f"{address}/again", data={"smiles_column": "no"}).status_code == 422


def test_the_options_of_a_form_are_those_of_the_table(page, queue, monkeypatch):
    known = {"conditions": [schemas.ConditionFacts(name="pH", choices=[])]}
    monkeypatch.setattr(queue, "facts", queue.facts.model_copy(update=known))
    form = {"text": "CC", "interval": "", "alerts": "true", "condition pH": "7", "smiles_column": ""}
    number = page.post("/tables", data=form).headers["location"].rpartition("/")[2]
    assert queue.find(number).options == schemas.Options(alerts=True, conditions={"pH": "7"})
    asked = {"smiles": ["CC"], "interval": 0.5, "domain": True}
    number = page.post("/api/tables", json=asked).json()["id"]
    assert queue.find(number).options == schemas.Options(interval=0.5, domain=True)
    data = {"properties": "true", "smiles_column": "smiles"}
    answer = page.post("/api/tables/file", files={"file": ("a.csv", b"smiles\nC\n")}, data=data)
    assert queue.find(answer.json()["id"]).options == schemas.Options(properties=True)


def test_numbers_have_the_decimals_of_the_labels_and_only_very_many_are_rounded():
    assert as_shown(-0.04, 1) == "0.0" and as_shown(1234.56, None) == "1235"
    assert as_rounded("-1.9469999999999998") == "-1.947" and as_rounded("0.000000123456") == "1.23456e-07"
    assert [as_rounded(text) for text in ("2.50", "CCO", "12345678901")] == ["2.50", "CCO", "12345678901"]


def test_a_model_with_a_card_says_what_its_numbers_are(tmp_path):
    words = {"description": "log10 of <length>, m", "limit": "3 or more", "direction": "lower"}
    known = schemas.EndpointFacts(**words, molecules=1234, rmse_out_of_fold=0.4, source="a table", licence="MIT")
    known = known.model_copy(update={"positives": 0.864})
    with page_of(PretendedService(), tmp_path, endpoints={"length": known}) as page:
        shown, one, about = rows_of(page, "CCO", "C"), rows_of(page, "C"), page.get("/about").text
        assert page.get("/api/model").json()["endpoints"]["length"]["description"] == words["description"]
    assert "<small>log10 of &lt;length&gt;, m</small></th>" in shown
    first, _ = about.split("<h2>Technical</h2>")
    titles = ["Endpoint", "Training molecules", "Better", "RMSE out of fold", "Source and licence"]
    assert re.findall(r'<th scope="col">(.+?)</th>', first) == titles
    cells = ["1,234<small>86 % of class 1</small>", "lower", "0.400", "a table, MIT"]
    assert re.findall("<td>(.+?)</td>", first) == cells
    assert 'href="/about#endpoint-0"' in one and 'id="endpoint-0"' in first


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "words"), [("m", "1,000 m"), ("", "1,000"), ("m (at 25 C)", "1,000 m (at 25 C)")])
def test_a_logarithm_comes_after_the_value_in_the_unit_of_the_measurements(tmp_path, unit, words):
    models = answering(lambda found, text: setattr(found.predictions["length"], "unlogged", 10.0 ** len(text)))
    known = schemas.EndpointFacts(description="log10 of length", scale="log10", unit=unit)
    with page_of(models, tmp_path, endpoints={"length": known}) as page:
        one, shown = rows_of(page, "CCO"), rows_of(page, "CCO", "C")
    assert f"<b>{words}</b> (100 to 10,000); log10 3.0" in one
    cell = re.findall(r'<b title="log10 3.0">([^<]+)</b><small>([^<]+)</small><small title="\S[^"]+">([^<]+)<', shown)
    assert cell == [(words, "100 to 10,000", "log10 3.0")]
    head = shown.split("</thead>")[0]
    assert 'title="log10 of length"' in head and f"<small>{f'{unit}, log10' if unit else 'log10'}</small></th>" in head


class OfClasses(PretendedService):
    """Two classes that exclude each other."""

    def facts(self) -> schemas.ModelFacts:
        names = {"y_bad": "bad", "y_good": "good"}
        known = {"targets": list(names), "is_probability": True, "decimals": {}, "class_names": names}
        return super().facts().model_copy(update=known)

    def read(self, *arguments):
        return replace(super().read(*arguments), added=[schemas.ColumnFacts(name="class", place=["class_name"])])

    def predict_one(self, text: str) -> schemas.MoleculePrediction:
        bad, good = (schemas.TargetPrediction(value=value, nearest=label) for value, label in ((0.25, 1), (0.75, 0)))
        found = {"y_bad": bad, "y_good": good}
        return schemas.MoleculePrediction(predictions=found, class_name="good", class_set="bad; good", similarity=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("similarity", "nearest", "warning", "is_other"),
    [(1.0, "CC", "", True), (0.996, "CC", "", True), (0.98, "CC", "", False), (1.0, "", "", False),
     (1.0, "C", OTHER_CONDITIONS, False)],
)  # fmt: skip
def test_a_similarity_of_1_is_no_identity(tmp_path, similarity, nearest, warning, is_other):
    known = {"similarity": similarity, "nearest": nearest, "warning": warning}
    with page_of(answering(lambda found, text: found.__dict__.update(known)), tmp_path) as page:
        assert ("another molecule" in rows_of(page, "C", domain=True)) == is_other


def test_each_of_several_models_says_whether_it_knows_the_molecule(tmp_path):
    near = {"similarity": 1.0, "nearest": "CC", "nearest_id": "7", "warning": "", "in_training": True}
    other = near | {"nearest": "CCC", "nearest_id": "", "in_training": False}

    def compare(found: schemas.MoleculePrediction, text: str) -> None:
        one = schemas.TargetPrediction(value=1.0, nearest=0.5)
        found.predictions, found.similarity, found.models = {"a": one, "b": one}, None, {"A": near, "B": other}

    known = {"targets": ["a", "b"], "compared_by": {"a": "A", "b": "B"}}
    models = answering(compare)
    added = [schemas.ColumnFacts(name=each, place=["predictions", each, "value"]) for each in "ab"]
    models.read = lambda *asked: replace(PretendedService().read(*asked), added=added)
    with page_of(models, tmp_path, **known) as page:
        one, shown = rows_of(page, "CC", domain=True), rows_of(page, "CC", "CC", domain=True)
    assert re.findall(r"; (measured|nearest) 0.5", one) == ["measured", "nearest"]
    said = " ".join(re.sub("<.*?>", "", shown.split('<td class="near"')[1].split("</td>")[0]).split())
    assert shown.count("<small>measured 0.5</small>") == 2  # that of "a", in both rows
    first = "A: The same molecule: training molecule 7, similarity 1.00 CC; "
    assert said.endswith(f"{first}B: similarity 0.99, another molecule; b measured 0.5 CCC")


def test_the_atoms_of_the_most_probable_class_are_shown_first(tmp_path):
    picture = PretendedService().atoms("C", "length")
    models = OfClasses()
    models.atoms = lambda smiles, target, conditions: picture.model_copy(update={"caption": target})
    with page_of(models, tmp_path) as page:
        number = predict(page, "C")["id"]
        shown = page.get(f"/tables/{number}/rows/0/atoms").text
        address = f"/api/tables/{number}/rows/0/atoms"
        given = page.get(address), page.get(f"{address}?target=y_bad")
        assert page.get(f"/api/tables/{number}/rows/7/atoms").status_code == 404
    assert [answer.json()["caption"] for answer in given] == ["y_good", "y_bad"]
    assert ">Class</label>" in shown and '<option value="y_good" selected>good</option>' in shown
    assert "predicts the probabilities of the classes bad, good<" in shown
    assert "Red atoms make the class good more probable, blue atoms less probable." in shown


def test_a_failure_of_the_page_is_a_sentence(tmp_path, monkeypatch):
    with open_queue(InThisProcess(PretendedService()), tmp_path) as queue:
        page = TestClient(make_app(queue), base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        monkeypatch.setattr(queue, "find", lambda number: 1 / 0)
        as_page, as_json = page.get("/tables/a"), page.get("/api/tables/a")
        as_part = page.get("/tables/a/rows", headers=HTMX)
    assert as_page.status_code == as_part.status_code == as_json.status_code == 500
    assert "The page failed here" in as_page.text and as_part.text.startswith('<p class="problem"')
    assert as_json.json() == {"detail": "the page failed here: the terminal of the server says where"}


def test_pictures(page):
    number = predict(page, "CCO")["id"]
    picture = page.get(f"/api/tables/{number}/rows/0/structure.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml") and picture.text == "<svg><!-- 3 --></svg>"
    assert "sandbox" in picture.headers["content-security-policy"]
    atoms = page.get(f"/api/tables/{number}/rows/0/atoms", params={"target": "length"}).json()
    assert [atom["symbol"] for atom in atoms["atoms"]] == ["C", "C", "O"]
    shown = page.get(f"/tables/{number}/rows/0/atoms").text
    assert 'src="data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="' in shown
    assert "The baseline, 0.00, is the prediction without information" in shown and shown.count("+1.00") == 3
    assert page.get(f"/api/tables/{number}/rows/0/atoms.svg").text == "<svg></svg>"
    assert page.get(f"/api/tables/{number}/rows/0/atoms", params={"target": "b"}).status_code == 422


def test_the_nearest_training_molecule_is_drawn_where_it_is_known(page, tmp_path):
    asked = {"smiles": ["CCO", "X"], "domain": True, "interval": 0.9}
    number = finished(page, page.post("/api/tables", json=asked))["id"]
    address = f"/api/tables/{number}/rows/0/nearest.svg"
    shown = page.get(f"/tables/{number}/rows/0").text
    assert re.findall(r'<img src="(\S+nearest.svg)" loading="lazy" alt="\w', shown) == [address]
    assert page.get(address).text == "<svg><!-- 1 --></svg>"
    for row in (1, 2, -1):
        assert page.get(f"/api/tables/{number}/rows/{row}/nearest.svg").status_code == 404
    with page_of(OfClasses(), tmp_path) as forgetful:
        number = finished(forgetful, forgetful.post("/api/tables", json=asked))["id"]
        assert "nearest.svg" not in forgetful.get(f"/tables/{number}/rows").text
        answer = forgetful.get(f"/api/tables/{number}/rows/0/nearest.svg")
    assert answer.status_code == 404 and "no nearest training molecule" in answer.json()["detail"]


@pytest.mark.slow
def test_conditions_are_shown_and_written_with_each_prediction(tmp_path):
    class Conditioned(PretendedService):
        def read(self, *asked) -> schemas.TableRows:
            found = super().read(*asked)
            rows = [replace(row, conditions=("25.0",)) for row in found.rows]
            added = [schemas.ColumnFacts(name="T", place=["conditions", "T"]), *found.added]
            return replace(found, rows=rows, added=added)

        def predict(self, rows, options):
            return [each.model_copy(update={"conditions": {"T": 25.0}}) for each in super().predict(rows, options)]

    with page_of(Conditioned(), tmp_path) as page:
        number = predict(page, "CCO")["id"]
        header, row = page.get(f"/api/tables/{number}/predictions.csv").text.splitlines()
        assert header.startswith("smiles,T,length,") and row.startswith("CCO,25,3,")
        assert page.get(f"/api/tables/{number}/rows").json()[0]["conditions"] == {"T": 25}
        assert "T: <b>25</b>" in page.get(f"/tables/{number}").text
        assert page.get(f"/api/tables/{number}/rows/0/atoms").json()["caption"] == "length 25.0"


def test_the_entrance_says_nothing_of_the_models(queue):
    token = "a-token-of-16-or-more"
    page = TestClient(make_app(queue, token), base_url="http://127.0.0.1:8000", follow_redirects=False)
    assert "HTTPBearer" in make_app(queue, token).openapi()["components"]["securitySchemes"]
    refused = [page.post("/enter", files={"token": ("a", b"x")}), page.post("/static/page.css"), page.get("/static/no")]
    assert [answer.status_code for answer in refused] == [422, 405, 404]
    assert all(answer.headers["content-type"].startswith("text/plain") for answer in refused)
    wrong = page.post("/enter", data={"token": "wrong"})
    assert wrong.status_code == 401 and "This is not the token" in wrong.text
    assert page.get("/").headers["location"] == "/enter"
    assert page.post("/enter", data={"token": token}).headers["location"] == "/"
    assert page.get("/").status_code == 200


def test_two_or_three_molecules_are_compared(page):
    number = finished(page, upload(page, b"smiles,name\nCCO,a\nCC,b\nX,b\nC,d\n"))["id"]
    assert page.get(f"/tables/{number}/rows").text.count(' name="row" ') == 4
    shown = page.get(f"/tables/{number}/compare?row=2&row=1&row=1").text
    assert re.findall(r'rows/(\d)">(\w)</a></th>', shown) == [("1", "b"), ("2", "b")]
    assert "<b>2.0</b>" in shown and "X cannot be read" in shown
    for rows in ("", "row=1", "row=0&row=1&row=2&row=3"):
        assert page.get(f"/tables/{number}/compare?{rows}").status_code == 422
    assert page.get(f"/tables/{number}/compare?row=0&row=4").status_code == 404


@pytest.mark.slow
def test_the_models_of_a_prediction_are_chosen(tmp_path):
    with page_of(PretendedService(), tmp_path, names=["A", "B"], targets=["length", "of B"]) as page:
        form = page.get("/").text
        assert re.findall(r'name="models" type="checkbox" value="(.)" checked', form) == ["A", "B"]
        number = page.post("/tables", data={"text": "smiles\nC\nCC", "models": ["A"]}).url.path.rpartition("/")[2]
        wait(page, number)
        shown = page.get(f"/tables/{number}").text
        assert re.findall(r'name="models" type="checkbox" value="(.)" checked', shown) == ["A"]
        assert 'value="length"' in shown and "of B" not in shown.split("</header>")[1]
        refused = page.post("/api/tables", json={"smiles": ["C"], "models": ["C"]})
    assert refused.status_code == 422 and "A, B" in refused.json()["detail"]
