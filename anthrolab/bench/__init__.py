"""The benchmark: cases, runs, the ledger of judged checkboxes, and the tables and statistics made from it."""
