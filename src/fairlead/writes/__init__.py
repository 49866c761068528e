"""The write disciplines: each thing a controller writes has one safe way."""
