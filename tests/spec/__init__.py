"""Known-answer checks that run by themselves on a file of vectors."""
