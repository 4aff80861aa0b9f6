from graphormer_sepnorm.interfaces.web.schemas import Answer, Facts, Prediction


def test_every_field_is_described_for_programs():
    for model in (Answer, Facts, Prediction):
        fields = model.model_json_schema()["properties"]
        assert all("description" in field for name, field in fields.items() if name != "targets"), model


def test_an_answer_is_json_and_back():
    answer = Answer(predictions={"a": Prediction(value=1.5, low=1, high=2)}, similarity=0.5)
    assert Answer.model_validate_json(answer.model_dump_json()) == answer
