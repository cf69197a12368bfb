"""What every layer may use and what knows nothing of plugins: streams, files, text, logs."""
