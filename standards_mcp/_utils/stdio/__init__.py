"""The process's own streams, and messages by lines over them."""
