from graphormer_sepnorm.interfaces.web.schemas import ModelFacts, MoleculePrediction, TargetPrediction


def test_every_field_is_described_for_programs():
    for model in (MoleculePrediction, ModelFacts, TargetPrediction):
        fields = model.model_json_schema()["properties"]
        assert all("description" in field for name, field in fields.items() if name != "targets"), model


def test_an_answer_is_json_and_back():
    answer = MoleculePrediction(predictions={"a": TargetPrediction(value=1.5, low=1, high=2)}, similarity=0.5)
    assert MoleculePrediction.model_validate_json(answer.model_dump_json()) == answer
