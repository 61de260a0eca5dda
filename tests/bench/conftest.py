"""The benchmarks are scripts beside the package, not part of it: their folder goes on the path for these tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
