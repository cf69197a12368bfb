"""The client of authorization servers, for people who sign in and for the host itself."""
