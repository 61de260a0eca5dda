"""`doorward` and `python -m doorward`."""


def main() -> int:
    """Run the command line. Returns the exit status."""
    return 0
