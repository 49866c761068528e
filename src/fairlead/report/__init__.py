"""Tables for the terminal, and the offline page of `fairlead demo`."""
