"""Reference operators: five real systems and their incidents, the old way beside the safe way."""
