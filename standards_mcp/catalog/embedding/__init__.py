"""Text encoders. Public: plugins may use them for texts of their own."""
