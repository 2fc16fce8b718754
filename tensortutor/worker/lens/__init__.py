"""The lens: looks inside a program that has run, and tells what it saw as events.

Imported only for a job that asks for it.
"""
