"""The screens of the app, one per module."""
