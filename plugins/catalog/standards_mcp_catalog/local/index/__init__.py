"""One generation of the index: full text, vectors and columns."""
