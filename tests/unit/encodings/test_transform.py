from graphormer_sepnorm.encodings.shipped import Centrality, Spatial
from graphormer_sepnorm.encodings.transform import GraphormerTransform
from tests.conftest import random_graph


def test_a_graph_gets_the_arrays_of_all_encodings_and_keeps_its_own():
    before = random_graph(3, 0)
    after = GraphormerTransform((Centrality(), Spatial()), (3,))(before.clone())
    assert {"degree", "spd"} <= set(after.keys()) and not {"degree", "spd"} & set(before.keys())
    assert all((after[name] == before[name]).all() for name in ("x", "edge_index", "edge_attr"))


def test_repr_shows_every_parameter():
    """PyG uses it to recognize a stale cache."""
    words = [
        repr(GraphormerTransform((Spatial(max_distance=d),), sizes)) for d, sizes in ((3, (3,)), (4, (3,)), (3, (4,)))
    ]
    assert len(set(words)) == 3 and "max_distance=3" in words[0] and "(4,)" in words[2]
