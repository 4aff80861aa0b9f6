"""The page in the browser: predictions of drawn, pasted and uploaded molecules, for people and as JSON.

``gate`` lets requests in, ``app`` answers them, ``desk`` queues what is to be computed, ``worker`` is the process that
computes, with the ``models`` in it, and ``answers`` is what they give. Nothing but the worker imports PyTorch.
"""
