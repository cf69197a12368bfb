"""The first milliseconds of a start: answer a client from a snapshot while the host is imported.

Modules here import the standard library only, because each import delays the first answer.
"""
