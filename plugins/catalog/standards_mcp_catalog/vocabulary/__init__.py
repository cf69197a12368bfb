"""How people name standards: codes, grades, subjects, sets."""
