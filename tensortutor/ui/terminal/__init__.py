"""What terminals can do, and how the app is drawn in those that can do less."""
