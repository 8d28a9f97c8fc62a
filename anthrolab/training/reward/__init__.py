"""The reward of a dialogue (paper section 4.6): scores, capability filter, adaptive weights, and where they are kept. No torch."""
