"""Where the values of the configuration come from, and what they may be.

Imported by everything that loads, calls or serves; imports only the plugin API and `_utils`.
"""
