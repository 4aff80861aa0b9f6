class InputError(ValueError):
    """The user's input cannot be used. The message is one sentence: what is wrong, where, and what to do.

    The commands print the message and exit with code 2.
    """
