"""Searching the course: the palette and the app that opens searches."""
