"""Interactions with an employer: their states, and who decides when several events race."""
