"""What every layer may use: streams, files, text, logs, secrets.

Knows nothing of plugins. Everything may import it.
"""
