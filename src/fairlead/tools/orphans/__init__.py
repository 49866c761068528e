"""Find and delete orphans: copies in another cluster whose originals are gone."""
