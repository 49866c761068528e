"""Find and delete orphans: objects that were copied to another cluster and whose originals no longer exist."""
