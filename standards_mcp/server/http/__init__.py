"""The service over HTTP: the app, its authorization, and the processes that serve it."""
