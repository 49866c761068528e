"""Error responses: Status objects, and the field errors that a Status lists as causes."""
