"""The page of a session: everything is in it, nothing is fetched, nothing in it can act."""

import re
from html.parser import HTMLParser

import pytest

from doorward.sessions import items
from doorward.sessions.export_html import OUTPUT_LIMIT, page
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.output import OutputRecorder

VOID = {"meta", "br"}
EVIL = '<script>alert(1)</script><img src=x onerror=alert(2)>"\'&\x1b[31m\u202e'


class Read(HTMLParser):
    """Checks that elements nest, and collects what is in the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def turn(home: Home, number: int, text: bytes = b"hello\n", argv: tuple[str, ...] = ("echo", "hi")) -> list[Line]:
    recorder = OutputRecorder(home)
    recorder.feed("stdout", text)
    start = items.turn_start("s", number, argv=argv, cwd="/work", approval_policy="never", sandbox_policy={})
    reasons = [{"gate": "approval", "switch": "a=b", "effect": "allow", "sentence": f"because {EVIL}"}]
    middle = [
        items.verdict(number, {"verdict": "allow", "gate": "approval", "reasons": reasons}, argv=argv, cwd="/work"),
        items.exec(
            number, argv=argv, cwd="/work", policy_digest="", enforcement={"filesystem": "kernel"},
            environment=[{"name": "A", "value": EVIL}, {"name": "T", "fingerprint": "ff", "length": 9}],
            fingerprint_key="k",
        ),
        items.network(number, {"host": "a.test", "port": 443, "decision": "allow", "bytes_down": 12345, "rule": EVIL}),
        items.refusal(number, {"host": "b.test", "port": 80, "message": f"no {EVIL}", "hint": "--allow b.test"}),
        items.observation(number, exit_code=3, output=recorder.finish().to_json()),
    ]  # fmt: skip
    stamp = f"2026-01-02T03:04:{number:02d}.000Z"
    return [Line(*item, timestamp=stamp) for item in (*start, *middle, items.turn_end("s", number))]


def made(home: Home, *lines: Line, title: str = "nightly") -> Read:
    meta = Line(*items.session_meta("s", timestamp="2026-01-02T03:04:05.000Z", cwd="/work", name=title))
    return Read("".join(page(home, [meta, *lines], session="s", title=title)))


def test_everything_is_in_it(home: Home) -> None:
    read = made(home, *turn(home, 1), *turn(home, 2))
    for wanted in ("nightly", "/work", "echo hi", "hello", "exit 3", "approval", "a.test:443", "12345", "b.test:80",
                   "--allow b.test", "fingerprint ff", "turn 2"):  # fmt: skip
        assert wanted in read.text


def test_nothing_in_it_can_act_or_fetch(home: Home) -> None:
    read = made(home, *turn(home, 1, EVIL.encode(), (EVIL,)), title=EVIL)
    assert not read.elements & {"script", "img", "iframe", "object", "link", "form", "svg", "video", "base"}
    assert not any(name.startswith("on") or name in ("src", "srcset", "action") for name, _ in read.attributes)
    assert all(value is not None and value.startswith("#") for name, value in read.attributes if name == "href")
    policies = [value for name, value in read.attributes if name == "content" and value and "default-src" in value]
    assert policies[0].startswith("default-src 'none'")
    assert "<script>alert(1)</script>" in read.text  # as text
    assert "\x1b" not in read.text
    assert "\u202e" not in read.text


def test_no_url_is_in_it_that_a_browser_would_open(home: Home) -> None:
    text = "".join(page(home, turn(home, 1), session="s", title="t"))
    assert re.findall(r"(?:https?:)?//[a-z]", text) == []


def test_a_long_output_is_cut_and_comes_from_the_blob(home: Home) -> None:
    read = made(home, *turn(home, 1, b"x" * (OUTPUT_LIMIT + 5000)))
    assert "x" * OUTPUT_LIMIT in read.text
    assert "x" * (OUTPUT_LIMIT + 1) not in read.text
    assert "5000 characters more" in read.text


def test_credentials_are_not_in_it(home: Home) -> None:
    token = "ghp_" + "a1B2" * 9
    read = made(home, *turn(home, 1, f"it is {token}\n".encode(), ("curl", f"https://me:{'p' * 9}@a.test/")))
    assert token not in read.text
    assert "ppppppppp" not in read.text
    assert read.text.count("[redacted: ") >= 2


@pytest.mark.parametrize(
    "lines", [[], [Line("event_msg", {"type": "task_started"})], [Line("verdict", {"reasons": 7})]]
)
def test_whatever_there_is_makes_a_page(home: Home, lines: list[Line]) -> None:
    assert "nightly" in made(home, *lines).text
