"""What the process of an isolated plugin runs; `remote.isolated` is the host's side of it."""
