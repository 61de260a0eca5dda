"""Rollouts: one append-only JSONL file a session, and everything read from it. Files only."""
