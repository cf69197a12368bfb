"""The commands by which an admin reads and changes what is served."""
