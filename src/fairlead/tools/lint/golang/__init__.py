"""Read Go: syntax, declarations and types, as far as they can be known without a compiler."""
