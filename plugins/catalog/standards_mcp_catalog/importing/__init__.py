"""In and out of a store: reads files and services, and merges what they hold."""
