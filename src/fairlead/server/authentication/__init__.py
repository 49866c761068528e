"""Authentication: bearer tokens, client certificates, ServiceAccount tokens and impersonation."""
