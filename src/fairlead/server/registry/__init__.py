"""What the server serves: one Resource a group, version and plural, with the rules of its kind as data."""
