"""Plots and pictures as rows of text, for every face: the app, the command line, plain programs.

Standard library only, because a learner's own interpreter draws with it too.
"""
