"""The page in the browser: predictions of drawn, pasted and uploaded molecules, for people and as JSON.

``app`` and ``middleware`` let requests in, ``api`` and ``pages`` answer them, ``job_queue`` has
what is to be computed and ``jobs`` what is finished. ``worker`` is the process that computes, with ``service`` and
``reading`` in it. ``trainings`` runs the command ``train``.
"""
