"""Copies left in another cluster: what leaves them, and the collector for what was left."""
