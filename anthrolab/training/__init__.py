"""Fine-tuning a model on decisions, and putting it back to work as a system."""
