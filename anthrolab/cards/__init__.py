"""Cards: who talks (persona), where and why (scenario), and which two meet in which (binding)."""
