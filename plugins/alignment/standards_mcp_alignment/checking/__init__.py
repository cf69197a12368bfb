"""Check the codes and the quoted standards of a lesson: the tool `check_alignment`."""
