"""Texts: what memories look like in Markdown, read and written."""
