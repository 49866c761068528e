"""The write path: everything between a decoded request and the stored object."""
