"""What tests share: servers and clients that they talk to, catalogs, and how to wait."""
