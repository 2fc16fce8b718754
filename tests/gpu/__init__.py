"""The GPU kit: everything that only a machine with a card can show, in one command."""
