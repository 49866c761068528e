"""Tables in the terminal and timelines as an offline page."""
