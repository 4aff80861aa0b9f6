import pytest

from graphormer_sepnorm.interfaces.web.exchange import kind_of_text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CCO", ".smi"),
        ("CCO ethanol\nCC", ".smi"),
        ("smiles name\nCC a", ".smi"),
        ("smiles\nCC", ".smi"),
        ("Canonical_SMILES\nCC\nC", ".csv"),
        ("SMILES\tname\nCC\ta", ".csv"),
        ('\ufeffid,"smiles"\n1,CC', ".csv"),
        ("id;smiles\n1;CC", ".csv"),
        ("C(C,C)", ".smi"),
        ("name;foo\nA;CCO\nB;CCC", ".csv"),
        ("name\tfoo\nA\tCCO\nB\tCCC", ".csv"),
        ("name , foo\nB , CCC", ".csv"),
        ("A;CCO\nB;CCC", ".csv"),
        ("name;foo\nA CCO", ".smi"),
        ("name;foo", ".smi"),
        ("CCO\tethanol\nC[C\tbroken\nN\tammonia", ".smi"),
        ("C[C\tbroken\nCCO\tethanol", ".smi"),
        ("CC(C)O |w:1|\nC[C@H](N)O |a:1|", ".smi"),
        ("InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3\nInChI=1S/C3H8O/c1-2-3-4/h4H,2-3H2,1H3", ".smi"),
        ("", ".smi"),
    ],
)
def test_what_a_pasted_text_is(text, kind):
    assert kind_of_text(text) == kind
