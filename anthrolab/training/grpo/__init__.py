"""Dialogue-level GRPO (paper section 4.6) on TRL: types and rollouts without torch, a thin adapter with it."""
