"""The directives: found in a source, read, and what each says."""
