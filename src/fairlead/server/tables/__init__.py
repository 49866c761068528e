"""Tables: lists and events as the rows and columns that kubectl prints."""
