"""Edits of files that leave every other byte, and the proof that nothing else changed."""
