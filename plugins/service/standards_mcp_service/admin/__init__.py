"""The admin page at ``/admin``: state of the service, and switches for its tools."""
