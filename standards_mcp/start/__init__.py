"""The first milliseconds of a start: answer a client from a snapshot while the host is imported.

Modules here import only the standard library and modules of `_utils` that do the same, because each
import delays the first answer.
"""
