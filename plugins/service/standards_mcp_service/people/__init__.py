"""The sign-in of people with a browser by OpenID Connect, and the page ``/connect``."""
