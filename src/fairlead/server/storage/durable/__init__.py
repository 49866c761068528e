"""State that outlives the process: a locked directory, a SQLite file in it, and the journal that fills it."""
