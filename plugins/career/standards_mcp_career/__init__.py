"""Matches opportunities with what a person can prove, and keeps what was decided and sent."""
