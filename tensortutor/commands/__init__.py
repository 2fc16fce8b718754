"""The commands of the command line, a module per family. Each takes a session and arguments."""
