"""Ends the process while it is imported, past every handler that could stop it."""

import os

os._exit(0)
