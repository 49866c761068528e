"""Encodings that behave like Go's: JSON, YAML and base64, including their error messages."""
