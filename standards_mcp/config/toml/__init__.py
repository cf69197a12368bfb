"""Configuration files as text: the lines of keys, mistakes, and changes of single keys."""
