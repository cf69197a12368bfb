"""The admin page at ``/admin``: what the service does, and switches of its tools."""
