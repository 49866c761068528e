"""The ways in: `inprocess`, a Transport by shape, and `http`, on sockets."""
