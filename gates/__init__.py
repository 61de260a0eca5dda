"""May this action run: the resolver and what it reads. Pure but for reading rule files."""
