"""Coding agents that run their shell commands through doorward: their hooks' formats, and one session for each."""
