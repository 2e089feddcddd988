"""What limited a run: the findings of all its ranks and recordings as one ranked list of causes.

Pure synthesis: it reads no files, measures nothing anew and writes no sentences.
"""
