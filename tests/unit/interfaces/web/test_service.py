"""What the worker computes, with two tiny models, and how it understands a table to train on."""

import re
from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web import schemas
from graphormer_sepnorm.interfaces.web.reading import look_at_table
from graphormer_sepnorm.interfaces.web.schemas import TableLook, TrainingChoice
from graphormer_sepnorm.interfaces.web.service import PredictionService, load_service, scored_endpoints, warm_up
from graphormer_sepnorm.options import Answers
from graphormer_sepnorm.output.columns import PredictionColumns
from graphormer_sepnorm.predict.domain import fit_domain
from graphormer_sepnorm.predict.intervals import fit_intervals
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.predict.trust import Trust
from graphormer_sepnorm.table_model.explain import stack_of
from graphormer_sepnorm.table_model.features import Conditions
from tests.page import PretendedService, tiny_service
from tests.several import save_panel, save_student
from tests.tables import write
from tests.tiny import Trusting, save_tiny, tiny_model

SMILES = ["CCO", "C[C", "[Xe]", "c1ccccc1O"]
ALL = schemas.Options(interval=0.9, domain=True, alerts=True, properties=True)


def rows_of(*smiles: str) -> list[schemas.TableRow]:
    return [schemas.TableRow([text], text, "") for text in smiles]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> PredictionService:
    return tiny_service(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize("options", [{"interval": 0.995}, {"interval": -1}, {"domain": True}, {"interval": 0.5}])
def test_options_are_refused_before_a_table_is_read_as_when_it_is(models, options, knows):
    asked = models if knows else replace(models, predictor=Trusting(models.predictor.models))
    said = []
    for check in (asked.facts().check, asked.added):
        try:
            check(schemas.Options(**options))
        except InputError as error:
            said.append(str(error))
    refused = not knows or options.get("interval") in (0.995, -1)
    assert len(said) == 2 * refused and len(set(said)) == refused


def test_answers_are_the_predictors(models):
    from graphormer_sepnorm.chem.features import read_molecules

    found = models.predictor.compute(read_molecules("mol", SMILES))
    answers = models.predict(rows_of(*SMILES), ALL)
    assert [bool(answer.error) for answer in answers] == [False, True, False, False]
    for row in (0, 2, 3):
        one = answers[row].predictions["logp"]
        assert (one.value, one.std) == pytest.approx((found.values[row, 0], found.spread[row, 0]), rel=1e-5)
        half_width = models.predictor.trust.intervals.half_widths(0.9, found.spread[row : row + 1])[0, 0]
        assert (one.high - one.low) / 2 == pytest.approx(half_width, rel=1e-5)
    assert "No training molecule contains Xe." in answers[2].warning and answers[2].similarity < 0.1
    assert answers[1].similarity is None and answers[1].warning == answers[1].nearest == ""
    assert answers[0].nearest in models.predictor.trust.domain.smiles


def test_answers_say_whether_a_molecule_is_in_the_training_table(models):
    known = "C[C@H](O)C(=O)O"
    predictor = Trusting(models.predictor.models, trust=Trust(fit_domain([f"{known}.Cl", known])))
    asked = replace(models, predictor=predictor)
    written = ["OC([C@@H](O)C)=O", "C[C@@H](O)C(=O)O", "CCO", "C[C"]
    answers = asked.predict(rows_of(*written), schemas.Options(domain=True))
    assert [(answer.similarity == 1, answer.in_training) for answer in answers] == [
        (True, True), (False, False), (False, False), (False, False),
    ]  # fmt: skip
    assert not any(answer.in_training for answer in asked.predict(rows_of(*written), schemas.Options()))


@pytest.mark.slow
def test_pictures(models):
    assert models.structure("CCO").lstrip().startswith("<?xml") and "</svg>" in models.structure("CCO")
    sizes = [re.search(r"width='(\d+)px' height='(\d+)px'", models.structure(f"C1{'C' * n}C1")) for n in (10, 48, 98)]
    small, large, largest = (tuple(map(int, size.groups())) for size in sizes)
    assert small == (220, 120) and small < large < largest and large[1] > 120
    atoms = models.atoms("CCO", "logp")
    assert [atom.symbol for atom in atoms.atoms] == ["C", "C", "O"] and "</svg>" in atoms.picture
    with pytest.raises(InputError, match="at most 200 are drawn"):
        models.structure("C" * 201)


def test_too_much_text_is_refused_and_a_workbook_before_it_is_unpacked(models, tmp_path, monkeypatch):
    monkeypatch.setattr("graphormer_sepnorm.interfaces.web.reading.MOST_CHARACTERS", 10)
    (tmp_path / "in.csv").write_text("smiles,note\nCC,12345678\nC,1\n")
    with pytest.raises(InputError, match=r"mine\.csv has more than 10 characters: leave out columns or rows"):
        models.read(tmp_path / "in.csv", "mine.csv", 10, ALL, "")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["smiles"], *[["C" * 100]] * 1000]:
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    monkeypatch.setattr("graphormer_sepnorm.interfaces.web.reading.MOST_CHARACTERS", 20_000)
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *arguments, **options: pytest.fail("it is unpacked"))
    with pytest.raises(InputError, match=r"mine\.xlsx unpacks to .* bytes, and at most 20,000 are read"):
        models.read(tmp_path / "in.xlsx", "mine.xlsx", 10, ALL, "")


def test_tables_are_read_as_predict_reads_them(models, tmp_path):
    path = write(tmp_path, "a.csv", b"id;smiles\n1;CC\n2\n\xe9;C\n")
    records = models.read(path, "a", 3, ALL, "")
    assert records.columns == ["id", "smiles"] and "logp" in dict(records.about)
    assert [(row.fields[0], row.smiles, bool(row.error)) for row in records.rows] == [
        ("1", "CC", False), ("2", "", True), ("\u00e9", "C", False),
    ]  # fmt: skip
    path.write_text("A1,CCO\nA2,CCN\n")
    for column in ("", "CCO"):
        with pytest.raises(InputError, match=r"^a seems to have no header: .* the molecule 'CCO'; [^-]*$"):
            models.read(path, "a", 3, ALL, column)


def test_the_column_of_molecules_can_be_chosen(models, tmp_path):
    path = write(tmp_path, "a.csv", "mol,parent\nCC,C\n")
    found = models.read(path, "a.csv", 3, ALL, "")
    assert (found.columns, found.smiles_column, found.rows[0].smiles) == (["mol", "parent"], "", "")
    assert found.problem == "choose the column of a.csv that has the SMILES"
    chosen = models.read(path, "a.csv", 3, ALL, "parent")
    assert (chosen.smiles_column, chosen.rows[0].smiles, chosen.problem) == ("parent", "C", "")
    wrong = models.read(path, "a.csv", 3, ALL, "mole")
    assert wrong.problem == "a.csv has no column 'mole': choose the one that has the SMILES"
    (tmp_path / "b.smi").write_text("CCO ethanol\n")
    assert models.read(tmp_path / "b.smi", "b", 3, ALL, "mol").rows[0].smiles == "CCO", "a .smi has one column"
    path.write_text("mol,id,mol\nCC,a,C\n")
    twice = models.read(path, "a.csv", 3, ALL, "mol")
    assert twice.problem == "a.csv has 2 columns 'mol': choose the one that has the SMILES"
    path.write_text("mol,mol\nCC,C\n")
    with pytest.raises(InputError, match="each with another name"):
        models.read(path, "a.csv", 3, ALL, "")


def test_the_columns_of_each_sheet_are_offered(models, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    data = book.create_sheet("Data")
    for sheet, row in ((book.active, "who"), (book.active, "me"), (data, "mol y"), (data, "CC 1"), (data, "CCC 2")):
        sheet.append(row.split())
    book.save(tmp_path / "a.xlsx")
    found = models.read(tmp_path / "a.xlsx", "a.xlsx", 9, ALL, "")
    assert found.sheets == {"Sheet": ["who"], "Data": ["mol", "y"]} and found.problem
    again = models.read(tmp_path / "a.xlsx", "a.xlsx", 9, ALL, "mol", "Data")
    assert [row.smiles for row in again.rows] == ["CC", "CCC"] and not again.problem
    look = look_at_table(tmp_path / "a.xlsx", "a.xlsx", 9, TrainingChoice(sheet="Data"))
    assert look.sheets == ["Sheet", "Data"] and [column.name for column in look.columns] == ["mol", "y"]


def test_a_model_that_was_trained_under_conditions_asks_for_them(models, tmp_path):
    conditions = Conditions.of(("temperature", "assay"), [("20.0", "b"), ("40.0", "a")])
    model = replace(stack_of(models.predictor), trust=None, conditions=conditions)
    conditioned = replace(models, predictor=model)
    assert conditioned.facts().conditions == [
        schemas.ConditionFacts(name="temperature", choices=[], low=20, high=40),
        schemas.ConditionFacts(name="assay", choices=["a", "b"]),
    ]
    path = write(tmp_path, "a.csv", "smiles,assay\nCC,a\nCC,c\n")
    with pytest.raises(InputError, match="the predictions depend on temperature: fill in the field"):
        conditioned.read(path, "a.csv", 9, schemas.Options(conditions={"temperature": " "}), "")
    of_form = {"temperature": "25", "assay": "b"}  # of which the table has the second one
    found = conditioned.read(path, "a.csv", 9, schemas.Options(conditions=of_form), "")
    assert found.added[0] == schemas.ColumnFacts(name="temperature", place=["conditions", "temperature"])
    known, unknown = conditioned.predict(found.rows, schemas.Options())
    assert known.conditions == {"temperature": 25.0, "assay": "a"}
    other = Conditions.of(("error",), [("20.0",), ("40.0",)])
    clashing = replace(models, predictor=replace(model, conditions=other))
    of_form = clashing.read(path, "a.csv", 9, schemas.Options(conditions={"error": "20"}), "")
    assert of_form.added[0] == schemas.ColumnFacts(name="error_condition", place=["conditions", "error"])
    assert known.error == "" and unknown.error == "assay is 'c': the model knows a, b"
    warm_up(conditioned)


def test_models_by_name(tmp_path):
    names = (("safe", "toxic"), ("0", "1"))
    save_tiny(tmp_path / "run", featurizer="mol", kind="classification", targets=("toxic", "sticky"), class_names=names)
    models = load_service([str(tmp_path / "run")], 0.9, "cpu", "auto")
    facts = models.facts()
    assert (facts.model, facts.targets, facts.is_probability, facts.models) == ("run", ["toxic", "sticky"], True, 1)
    assert facts.classes == {"toxic": ("safe", "toxic"), "sticky": ("0", "1")}
    assert facts.confidence is None and not facts.knows_domain
    assert "1 layers, width 16" in facts.about["architecture"] and str(tmp_path) not in str(facts)
    (answer,) = models.predict(rows_of("CC"), schemas.Options())
    assert 0 < answer.predictions["sticky"].value < 1 and answer.predictions["sticky"].std is None
    assert ("model", "run") in models.origin
    with pytest.raises(InputError, match="no file or folder"):
        load_service(["nothing"], 0.9, "cpu", "auto")


@pytest.mark.slow
def test_several_models_are_on_one_page(tmp_path):
    """A panel, whose comparison is that of all, and a model that learned from other molecules."""
    student = save_student(tmp_path / "other", ("logD",), learnt=["CC", "CCO", "CCN", "CCF", "CC=O"])
    service = load_service([str(save_panel(tmp_path / "panel")), str(student)], 0.8, "cpu", "auto")
    facts = service.facts()
    assert facts.targets == ["toxic", "hERG", "Papp", "bound", "logD"] and not facts.missing and facts.knows_domain
    assert facts.endpoints["hERG"].direction == "lower" and facts.endpoints["logD"].molecules == 5
    assert not facts.is_probability and set(facts.classes) == {"toxic", "bound"}
    options = schemas.Options(interval=0.8, domain=True)
    (found,) = service.predict(rows_of("CCS"), options)
    assert found.predictions["toxic"].set and found.predictions["logD"].low is not None
    assert [near["in_training"] for near in found.models.values()] == [True, False]
    assert facts.compared_by == dict.fromkeys(facts.targets[:4], "panel") | {"logD": "other"}
    assert found.models["panel"]["nearest"] == "CCS" and found.models["other"]["similarity"] < 1
    assert service.atoms("CCS", "hERG").atoms and found.predictions["hERG"].drugs is not None
    assert facts.names == ["panel", "other"]
    (chosen,) = service.predict(rows_of("CCS"), options.model_copy(update={"models": ["other"]}))
    assert chosen.predictions == {"logD": found.predictions["logD"]}
    assert [column.name for column in service.added(schemas.Options(models=["other"]))] == ["logD", "error"]
    of_both = schemas.Options(endpoints=["herg", "logD"])
    facts.check(of_both)
    assert set(service.predict(rows_of("CCS"), of_both)[0].predictions) == {"hERG", "logD"}
    of_one = of_both.model_copy(update={"models": ["other"]})
    assert set(service.predict(rows_of("CCS"), of_one)[0].predictions) == {"logD"}
    with pytest.raises(InputError, match="none of the chosen endpoints"):
        service.added(schemas.Options(endpoints=["hERG"], models=["other"]))


def test_endpoints_have_their_description_and_scores(models, tmp_path):
    rows = TrainingRows.of(np.where(np.arange(200) < 5, np.nan, 1.0)[:, None])
    known = {"logp": schemas.EndpointFacts(description="log10 of P")}
    predictor = Trusting(models.predictor.models, trust=replace(models.predictor.trust, rows=rows))
    facts = replace(models, predictor=predictor, endpoints=known).facts()
    assert facts.endpoints == {"logp": schemas.EndpointFacts(description="log10 of P", molecules=195, frequent=(1, 1))}
    assert models.facts().endpoints == {"logp": schemas.EndpointFacts()}
    predictor.scales = ("log10",)
    logarithm = replace(models, predictor=predictor, endpoints=known).facts().endpoints["logp"]
    assert (logarithm.scale, logarithm.unit) == ("log10", "")
    assert replace(models, predictor=predictor).facts().endpoints["logp"].unit == "in the unit of the table"
    run = save_tiny(tmp_path / "run", featurizer="mol")
    (run / "test.json").write_text('{"value": 0.5}')
    assert load_service([str(run)], 0.9, "cpu", "auto").facts().endpoints == {"logp": schemas.EndpointFacts(test=0.5)}
    scored = {"value": 0.5, "interval": [0.25, 0.75], "molecules": 9}
    known = schemas.EndpointFacts(test=0.5, test_interval=(0.25, 0.75), test_molecules=9)
    assert scored_endpoints(["a", "b"], {"test": 0.5, "test_scores": {"a": scored}}) == {"a": known}
    assert scored_endpoints(["a", "b"], {"test": 0.5}) == {}


def test_the_parts_of_a_target_are_called_as_their_columns():
    model, config = tiny_model()
    scaled = replace(config, task=replace(config.task, scales=("log10",)))
    errors, zeros = np.linspace(0.1, 2, 99)[:, None], np.zeros((99, 1))
    trust = Trust(fit_domain(["CCO"]), fit_intervals(errors, zeros, zeros))
    columns = PredictionColumns(Trusting([(model, scaled), (model, scaled)], trust=trust), Answers(0.9)).all
    parts = {one.name.removeprefix("logp").removeprefix("_") or "value": one.path[-1] for one in columns if one.path}
    names = ["value", "unlogged", "low", "high", "unlogged_low", "unlogged_high", "std"]
    assert parts == dict(zip(names, names, strict=True)) and set(names) <= set(schemas.TargetPrediction.model_fields)


def test_an_unknown_condition_is_refused():
    facts = PretendedService().facts().model_copy(update={"conditions": []})
    with pytest.raises(InputError, match=r"^T is not a condition of the model: it reads none$"):
        facts.check(schemas.Options(conditions={"T": "1"}))
    facts = facts.model_copy(update={"conditions": [schemas.ConditionFacts(name="temperature", choices=[])]})
    facts.check(schemas.Options(conditions={"temperature": "25"}))
    with pytest.raises(InputError, match="its conditions are temperature; did you mean 'temperature'"):
        facts.check(schemas.Options(conditions={"temperatur": "25"}))


# Rings of 3 to 14 atoms, a salt, a row that cannot be read, one without a label, and a bound.
RINGS = [f"C1{'C' * number}C1,{number}0 nM,{number % 2},{2010 + number}" for number in range(1, 13)]
OTHERS = ["[Na+].[O-]CCCC,900 nM,1,2023", "C1CC,5 nM,0,2024", "CCCO,,1,2025", "OCCO,<5 nM,0,2026"]
TABLE = "\n".join(["smiles,IC50,active,year", *RINGS, *OTHERS])


def look(tmp_path, content: str = TABLE, most_rows: int = 100, **choice) -> TableLook:
    path = write(tmp_path, "t.csv", content)
    return look_at_table(path, "assay.csv", most_rows, TrainingChoice(**{"split": "random"} | choice))


def test_a_regression(tmp_path):
    found = look(tmp_path, targets=["IC50"], scale="nM")
    assert [(each.name, each.content, each.filled) for each in found.columns] == [
        ("smiles", "SMILES", 16), ("IC50", "numbers", 15), ("active", "classes", 16), ("year", "numbers", 16),
    ]  # fmt: skip
    assert (found.rows, found.smiles_column, found.problem, found.skipped) == (16, "smiles", "", 2)
    assert [row for row, _, _ in found.reasons] == [15, 16] and all(why for *_, why in found.reasons)
    (target,) = found.targets
    assert (target.name, target.labels, target.bounds, target.unit) == ("pIC50", 13, 1, "nM")
    assert target.values == "6.046 to 8"  # of 900 nM and of 10 nM
    assert sum(found.splits.values()) == 14 and set(found.splits) == {"train", "val", "test"}
    assert any("salt" in sentence for sentence in found.sentences)


def test_classes_the_split_by_time_and_the_only_column(tmp_path):
    found = look(tmp_path, targets=["active"])
    assert [(each.labels, each.values) for each in found.targets] == [(15, "7 x 0, 8 x 1")]
    found = look(tmp_path, targets=["IC50"], split="time", split_column="year")
    assert sum(found.splits.values()) == 14 and set(found.splits) == {"train", "val", "test"}
    found = look(tmp_path, "\n".join(["smiles,y", *(ring.partition("0 nM")[0] for ring in RINGS)]), scale="log10")
    assert found.chosen == ["y"] and found.targets[0].values == "0 to 1.079"


def test_more_than_a_tenth_of_undecided_separators_are_refused(tmp_path):
    def found(texts: list[str], **choice) -> TableLook:
        lines = (f"{ring.partition(',')[0]}\t{text}" for ring, text in zip(RINGS, texts, strict=True))
        return look(tmp_path, "\n".join(["smiles\ty", *lines]), **choice)

    two = ["1,000", ">2,000", *"3456789123"]
    assert "decimal" in found(two).problem and found(["1,000", *"23456789123"]).skipped == 1
    assert found(two, decimal="comma").targets[0].values == "1 to 9"


@pytest.mark.parametrize(
    "choice", [{}, {"targets": ["none"]}, {"targets": ["smiles"]}, {"targets": ["active"], "scale": "log10"}]
)
def test_a_problem_comes_with_the_columns(tmp_path, choice):
    found = look(tmp_path, **choice)
    assert found.problem and str(tmp_path) not in found.problem and len(found.columns) == 4 and not found.targets
    assert "--" not in found.problem


def test_the_column_of_the_smiles_is_chosen(tmp_path):
    content = TABLE.replace("smiles", "drawing", 1)
    found = look(tmp_path, content, targets=["IC50"])
    assert found.problem and [each.name for each in found.columns] == ["drawing", "IC50", "active", "year"]
    assert not look(tmp_path, content, targets=["IC50"], smiles_column="drawing").problem


@pytest.mark.parametrize(
    "content", ["smiles,y\n", "smiles,y\nC,1\nCC,2\nCCC,3\n", "\x00\x01", "smiles".encode("utf-16")]
)
def test_what_is_no_table_or_too_large_is_refused(tmp_path, content):
    with pytest.raises(InputError) as error:
        look(tmp_path, content, most_rows=2)
    assert str(tmp_path) not in str(error.value)
