"""The store, its objects at each version, and the optional database behind it."""
