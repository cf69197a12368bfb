"""The admin page at ``/admin``: state of the service, its plugins, tools and tokens."""
