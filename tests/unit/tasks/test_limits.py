import numpy as np

from graphormer_sepnorm.tasks.limits import limited


def test_values_are_moved_to_the_limits_of_their_target_and_no_others():
    values = np.array([[1.5, -3.0, 9.0], [2.5, np.nan, -9.0]], np.float32)
    found = limited(values, ((None, 2.0), (-1.0, 1.0), (None, None)))
    np.testing.assert_array_equal(found, np.array([[1.5, -1, 9], [2, np.nan, -9]], np.float32))
    assert found.dtype == np.float32 and limited(values, ()) is values
