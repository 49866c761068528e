"""Durable state: a locked data directory, a SQLite database in it, and the journal that writes to the database."""
