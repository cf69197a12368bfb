"""The service over HTTP: ``serve --transport http``, and its tokens, ``auth token``."""
