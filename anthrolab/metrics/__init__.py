"""Descriptive measures of dialogues: how they were written and timed. Nothing here is a score."""
