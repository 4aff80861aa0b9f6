import pytest

from graphormer_sepnorm.interfaces.web.exchange import kind_of_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CCO", ".smi"),
        ("CCO ethanol\nCC", ".smi"),
        ("smiles name\nCC a", ".smi"),
        ("SMILES\tname\nCC\ta", ".csv"),
        ('\ufeffid,"smiles"\n1,CC', ".csv"),
        ("id;smiles\n1;CC", ".csv"),
        ("C(C,C)", ".smi"),
        ("", ".smi"),
    ],
)
def test_what_a_pasted_text_is(text, kind):
    assert kind_of_text(text) == kind
