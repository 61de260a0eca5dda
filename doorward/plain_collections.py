"""`deque`, `OrderedDict` and `lru_cache` without `collections` and `functools`, which cost every run's proxy 1.5 ms.

All three are written in C and the same as there; `lru_cache` takes a size alone. Imports nothing of doorward: every
floor may use it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict as OrderedDict
    from collections import deque as deque
    from functools import lru_cache as lru_cache
else:
    try:
        from _collections import OrderedDict as OrderedDict
        from _collections import deque as deque
        from _functools import _lru_cache_wrapper
    except ImportError:  # another interpreter than CPython
        from functools import lru_cache
    else:

        def _info(*numbers):
            return numbers

        def lru_cache(maxsize):
            """The last `maxsize` results of a function, by its arguments."""

            def remember(function):
                made = _lru_cache_wrapper(function, maxsize, False, _info)
                made.__wrapped__ = function
                return made

            return remember
