"""Public formats of standards, read into records.

`files.open_sources` finds documents, `readers.read_documents` turns each into records and
problems. Every reader is a pure function of what it is given, and none stops at what is wrong:
it yields a `problems.Problem` and goes on.
"""
