"""What to look at next: one key at a time, coalesced, delayed, prioritised; conflict is not failure."""
