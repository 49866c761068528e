"""The local view: reflector, store, indexes, own writes overlaid."""
