"""The page in the browser: predictions of drawn, pasted and uploaded molecules, for people and as JSON.

``app`` lets requests in, ``api`` and ``pages`` answer them. ``job_queue`` has what is to be computed and the process
that computes, with ``service`` and ``reading`` in it; ``jobs`` has what is finished. ``trainings`` runs ``train``.
"""
