"""What a course is: read from Markdown, proved by `verify`."""
