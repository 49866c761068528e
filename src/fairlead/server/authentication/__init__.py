"""Who asks: bearer tokens, client certificates, ServiceAccount tokens, impersonation."""
