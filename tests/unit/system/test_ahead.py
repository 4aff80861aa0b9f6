import threading

import pytest

from graphormer_sepnorm.system.ahead import DEPTH, ahead


def test_results_come_in_order_and_a_few_are_computed_ahead():
    made = []
    results = ahead(lambda item: made.append(item) or (10 * item, threading.current_thread()), range(5))
    first, thread = next(results)
    assert first == 0 and thread is not threading.current_thread()
    assert [value for value, _ in results] == [10, 20, 30, 40] and made == list(range(5))


def test_items_are_taken_a_few_ahead_of_the_results():
    taken = []
    results = ahead(str, (taken.append(item) or item for item in range(10)))
    assert next(results) == "0" and taken == list(range(DEPTH + 1))


def test_an_exception_is_raised_where_its_result_is_needed():
    results = ahead(lambda item: 6 // item, [3, 0, 2])
    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_stopping_early_leaves_no_thread():
    before = threading.active_count()
    results = ahead(str, range(10))
    next(results)
    results.close()
    assert threading.active_count() == before
