from dataclasses import replace

import pytest

from graphormer_sepnorm.chem.features import FEATURIZERS
from graphormer_sepnorm.model import Network
from graphormer_sepnorm.runs.checkpoint import save_model
from graphormer_sepnorm.runs.folder import WEIGHTS
from graphormer_sepnorm.runs.info import as_text, describe_model, salts_words, vocabulary_words
from tests.tiny import save_tiny, tiny_model


def test_facts_of_a_model(tmp_path):
    facts = describe_model(save_tiny(tmp_path))
    model, _ = tiny_model()
    assert facts["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert facts["architecture"] == "Graphormer, 1 layers, width 16, FFN 16, 2 heads, sepnorm (post-norm)"
    assert (facts["epoch"], facts["validation"], facts["test"]) == (3, 0.5, None)
    assert (facts["task"], facts["targets"], facts["training_data"]) == ("regression", ["logp"], "sample")


@pytest.mark.parametrize(("messages", "scaling"), [(True, False), (False, True)])
def test_messages_and_degree_scaling_are_described(tmp_path, messages, scaling):
    _, config = tiny_model()
    config = replace(config, model=replace(config.model, messages=messages, degree_scaling=scaling))
    save_model(tmp_path / WEIGHTS, Network(config.model), config, {})
    facts = describe_model(tmp_path)
    assert (facts["messages_along_bonds"], facts["degree_scaling"]) == (messages, scaling)


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


def test_a_line_for_each_fact_that_is_known():
    facts = {"training_data": "zinc", "test": None, "parameters": 1234567, "targets": ["a", "b"]}
    facts |= {"molecules": 1004, "metric": "rocauc", "validation": 0.59212, "epoch": 1200}
    text = as_text({**facts, "degree_scaling": True, "messages_along_bonds": False})
    assert text.splitlines() == [
        "training data        zinc",
        "parameters           1,234,567",
        "targets              a, b",
        "molecules            1,004",
        "metric               ROC-AUC",
        "validation           0.592",
        "epoch                1200",
        "degree scaling       yes",
        "messages along bonds no",
    ]


def test_endpoints_are_a_line_each():
    known = {
        "description": "log10 of solubility, ug/mL",
        "molecules": 2172,
        "rmse_out_of_fold": 0.481,
        "limit": "9 or less",
    }
    efflux = {"description": "efflux", "score": 0.8, "metric": "rocauc"}
    text = as_text({"endpoints": {"Sol": known, "MDR1": efflux}})
    assert text.splitlines() == [
        "endpoints            Sol   log10 of solubility, ug/mL; 2,172 training molecules; RMSE out of fold 0.481; "
        'limit of the assay: 9 or less means "at most"',
        "                     MDR1  efflux; ROC-AUC on test molecules 0.800",
    ]
