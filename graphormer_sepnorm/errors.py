class InputError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what, where and what to do.

    The commands print the message and end with exit code 2.
    """
