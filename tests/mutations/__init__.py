"""Small bugs written by hand, each with the tests that should see it: ``python -m tests.mutations``.

A file per room of the package, named after it; ``runner`` tries them, ``ROOMS`` in ``__main__`` names them.
"""
