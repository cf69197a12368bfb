"""Resumes: from files to normalised Markdown."""
