"""The closed loop: filter, failure records, repair, skills, training data (paper section 4.5 and the first half of 4.6)."""
