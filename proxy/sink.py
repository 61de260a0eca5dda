"""A sink for a door that stands alone: each item is handed to a function, before anything is answered."""

from __future__ import annotations

from collections.abc import Callable

from doorward.proxy.loop import Loop, Promise
from doorward.proxy.records import items_of
from doorward.start_json import Encoded, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.proxy.record_form import Form
    from doorward.proxy.records import Item


class FunctionSink:
    """`keep(run, item)` has kept the item when it returns. What it raises closes the connection it is about. `keeps`:
    see `records.Sink`."""

    def __init__(self, loop: Loop, keep: Callable[[str, Item], None], *, keeps: bool = True) -> None:
        self.keeps = keeps
        self._keep = keep
        self._kept: Promise[None] = Promise(loop)
        self._kept.set(None)

    def post(self, run: str, items: list[Item]) -> None:
        """See `records.Sink`."""
        for item in items:
            payload = item["payload"]
            self._keep(run, {**item, "payload": loads(payload)} if isinstance(payload, Encoded) else item)

    def submit(self, run: str, items: list[Item], *, hurry: bool = False, unless: int = -1) -> Promise[None]:
        """See `records.Sink`."""
        self.post(run, items)
        return self._kept

    def submit_form(
        self, run: str, form: Form, strings: list[str], *, hurry: bool = False, unless: int = -1
    ) -> None:
        """See `records.Sink`."""
        self.post(run, items_of(form, strings))

    def hurry(self) -> None:
        """See `records.Sink`."""
