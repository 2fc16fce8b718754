"""One module a section; each has `main(kit, deadline)`."""
