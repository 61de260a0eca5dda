"""What other sandboxes' settings mean here: one pure function a tool, and what it makes."""
