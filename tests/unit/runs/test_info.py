from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.runs.info import describe_model, salts_words, vocabulary_words
from tests.tiny import save_tiny, tiny_model


def test_facts_of_a_model(tmp_path):
    facts = describe_model(save_tiny(tmp_path))
    model, _ = tiny_model()
    assert facts["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert facts["architecture"] == "Graphormer, 1 layers, width 16, FFN 16, 2 heads, sepnorm (post-norm)"
    assert (facts["epoch"], facts["validation"], facts["test"]) == (3, 0.5, None)
    assert (facts["task"], facts["targets"], facts["training_data"]) == ("regression", ["logp"], "sample")


def test_probabilities_are_of_the_second_class(tmp_path):
    names = (("safe", "toxic"), ("0", "1"))
    save_tiny(tmp_path, kind="classification", targets=("Ames", "hERG"), class_names=names)
    assert describe_model(tmp_path)["predicts"] == ["probability that Ames is toxic", "probability that hERG is 1"]
    assert describe_model(save_tiny(tmp_path / "other"))["predicts"] is None


def test_every_featurizer_is_described():
    for name, featurizer in FEATURIZERS.items():
        assert "bond" in vocabulary_words(name) and "parent" not in vocabulary_words(name)
        assert ("removed" if featurizer.preparation else "as written") in salts_words(name)
    assert "neutral parent" in salts_words("mol-standardized")
