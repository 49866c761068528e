"""Orphans: copies that a controller left in another cluster, and a collector that deletes them."""
