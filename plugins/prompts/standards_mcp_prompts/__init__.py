"""Prompts: how a teacher begins a conversation about standards."""

from .plugin import PromptsPlugin

__all__ = ["PromptsPlugin"]
