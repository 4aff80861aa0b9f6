"""The page in the browser: predictions of drawn, pasted and uploaded molecules, for people and as JSON.

``server`` and ``middleware`` let requests in, ``api``, ``pages`` and ``training_pages`` answer them, ``job_queue`` has
what is to be computed and ``jobs`` what is finished, ``worker`` is the process that computes, with the ``service`` in
it, and ``schemas`` is what they give. ``look`` shows how the command ``train`` understands a table, and ``trainings``
runs that command.
"""
