"""Tables: the rows and columns of objects that kubectl prints."""
