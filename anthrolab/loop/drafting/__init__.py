"""Cards at scale: a model drafts personas and scenarios to a plan, and code checks and binds them (`drafting.draft_cards`)."""
