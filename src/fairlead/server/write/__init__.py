"""The write path: the steps from a decoded request to the stored object."""
