"""What the lens's events look like as text: for the command line, and for panes of the app."""
