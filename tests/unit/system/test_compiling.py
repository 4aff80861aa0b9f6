import pytest

from graphormer_sepnorm.system.compiling import cached


@pytest.mark.parametrize(("writable", "asked"), [(True, [True]), (False, [True, False])])
def test_a_cache_is_used_if_it_can_be_written(writable, asked):
    wishes = []

    def compiler(cache):
        def compile_(function):
            wishes.append(cache)
            if cache and not writable:
                raise RuntimeError("cannot cache function: no locator available")
            return lambda x: function(x) + 1

        return compile_

    assert cached(compiler, abs)(-4) == 5
    assert wishes == asked
