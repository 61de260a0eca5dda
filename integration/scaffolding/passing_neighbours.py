"""Tests run side by side, and a neighbour's socket is one that a sandbox hides. Where it goes away in the very moment a
sandbox is made, bubblewrap gives up before the command has begun; doorward then says so and that one should try again.
"""

from __future__ import annotations

_SAID = ("went away", "Can't bind mount")


def in_the_way(failure: str) -> bool:
    """Whether a failed start says that something went away meanwhile: what a person does then is to try again."""
    return any(said in failure for said in _SAID)
