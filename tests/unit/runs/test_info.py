from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.runs.info import VOCABULARIES, as_text, describe_model
from tests.tiny import save_tiny, tiny_model


def test_facts_of_a_model(tmp_path):
    facts = describe_model(save_tiny(tmp_path))
    model, _ = tiny_model()
    assert facts["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert facts["architecture"] == "Graphormer, 1 layers, width 16, FFN 16, 2 heads, sepnorm (post-norm)"
    assert (facts["epoch"], facts["validation"], facts["test"]) == (3, 0.5, None)
    assert (facts["task"], facts["targets"], facts["training_data"]) == ("regression", ["logp"], "sample")


def test_every_featurizer_has_words():
    assert VOCABULARIES.keys() == FEATURIZERS.keys()


def test_a_line_for_each_fact_that_is_known():
    text = as_text({"training_data": "zinc", "test": None, "parameters": 1234567, "targets": ["a", "b"]})
    assert text == "training data  zinc\nparameters     1,234,567\ntargets        a, b"
