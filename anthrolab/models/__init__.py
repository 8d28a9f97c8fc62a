"""Models: one client for any OpenAI-compatible server, the embedded server, and what a "system" is."""
