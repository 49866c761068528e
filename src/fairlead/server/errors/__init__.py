"""Error responses: Status objects and the field errors inside them."""
