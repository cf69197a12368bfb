"""Ends the program while it is imported, in a group within a group."""

raise BaseExceptionGroup("a", [BaseExceptionGroup("b", [SystemExit(3), GeneratorExit()])])
