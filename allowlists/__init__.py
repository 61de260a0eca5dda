"""Who may be reached: hosts, rules, address classes and presets. Pure: no sockets, no files."""
