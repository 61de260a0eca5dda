"""The network door: HTTP and CONNECT proxying behind the allowlist. Emits decisions; knows nothing of sessions."""
