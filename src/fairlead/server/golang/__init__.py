"""JSON, YAML and base64 as Go's standard library reads and writes them, with Go's error messages."""
