"""What a function does to objects and which requests it sends, also through the functions that it calls."""
