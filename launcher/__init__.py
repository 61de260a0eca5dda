"""The operating system's door: one backend a platform, behind one small interface."""
