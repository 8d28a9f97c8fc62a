"""Training data: every decision of accepted, repaired and hand-written dialogues as a sample (paper section 4.6, first half)."""
