"""The same real `doorward` process and origins as in `integration/run`."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_SPEC = spec_from_file_location("run_fixtures", Path(__file__).parent.parent / "run" / "conftest.py")
assert _SPEC is not None and _SPEC.loader is not None
_FIXTURES = module_from_spec(_SPEC)
_SPEC.loader.exec_module(_FIXTURES)

doorward = _FIXTURES.doorward
origin = _FIXTURES.origin
