"""The service over HTTP: the app, who may use it, and the process that serves it."""
