"""The lens and the error atlas in a process of the learner's own: notebook, shell, script.

Nothing is shut in here and nothing of the app is loaded. torch is imported only when the learner's
code has done so, or with the first `%%lens`.
"""
