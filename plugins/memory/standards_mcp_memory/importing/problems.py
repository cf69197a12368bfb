"""What keeps a file from being read."""


class UnreadableError(ValueError):
    """A file is not in its form; the message continues its name."""
