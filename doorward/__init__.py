"""doorward runs a command you do not fully trust, says no where policy says no, and keeps the record."""
