"""The dialogue runtime: two speakers, virtual time, one unsent draft each (paper section 4)."""
