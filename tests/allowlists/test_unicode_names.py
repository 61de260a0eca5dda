"""UTS 46 for names that people write."""

import pytest

from doorward.allowlists.host import MalformedHost
from doorward.allowlists.unicode_names import to_ascii


@pytest.mark.parametrize(
    ("name", "ascii_form"),
    [
        ("bücher.test", "xn--bcher-kva.test"),
        ("BÜCHER.TEST", "xn--bcher-kva.test"),
        ("bu\u0308cher.test", "xn--bcher-kva.test"),  # composed
        ("my_host.bücher.test", "my_host.xn--bcher-kva.test"),
        ("почта.test", "xn--80a1acny.test"),
    ],
)
def test_labels_become_a_labels(name: str, ascii_form: str) -> None:
    assert to_ascii(name) == ascii_form


@pytest.mark.parametrize("name", ["\u00adü\ufffd.test", "ü\u2028.test", "-ü.test", "\u0308.test"])
def test_bad_unicode_says_so(name: str) -> None:
    with pytest.raises(MalformedHost, match="not valid Unicode"):
        to_ascii(name)
