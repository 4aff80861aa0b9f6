"""The page in the browser: predictions of drawn, pasted and uploaded molecules, for people and as JSON.

``server`` and ``middleware`` let requests in, ``api`` and ``pages`` answer them, ``job_queue`` has what is to be
computed and ``jobs`` what is finished, ``worker`` is the process that computes, with the ``service`` in it, and
``schemas`` is what they give. Nothing but the worker imports PyTorch.
"""
