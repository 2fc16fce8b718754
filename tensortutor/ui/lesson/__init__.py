"""What the screen of a lesson is made of. Each part gets what it needs when it is made."""
