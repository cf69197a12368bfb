"""Vectors of atoms, resumes and opportunities: made, kept, and asked for the nearest."""
