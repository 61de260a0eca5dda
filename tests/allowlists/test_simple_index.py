"""Pages of the simple repository API."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.simple_index import UnreadableIndex, file_links, project_pages

PAGE = "https://index.test/simple/pip/"


def test_html() -> None:
    body = b"""<!DOCTYPE html><html><body><h1>Links</h1>
      <a href="https://files.test/a/pip-1.0.tar.gz#sha256=00">pip-1.0.tar.gz</a>
      <A HREF='../../packages/pip-1.1-py3-none-any.whl?x=1&amp;y=2#sha256=00' data-requires-python=">=3">wheel</A>
      <a href="//cdn.test:8443/pip-1.2.zip">zip</a>
      <a href="https://home.test/pip">home page</a>
      <a>nothing</a><a href="">empty</a><a href="https://[bad/pip-1.whl">bad</a>"""
    assert file_links(PAGE, "text/html; charset=utf-8", body) == (
        "https://files.test/a/pip-1.0.tar.gz#sha256=00",
        "https://index.test/packages/pip-1.1-py3-none-any.whl?x=1&y=2#sha256=00",
        "https://cdn.test:8443/pip-1.2.zip",
    )


def test_html_with_a_base() -> None:
    body = b'<base href="https://mirror.test/files/"><base href="https://no.test/"><a href="pip-1.0.whl">x</a>'
    assert file_links(PAGE, "text/html", body) == ("https://mirror.test/files/pip-1.0.whl",)


def test_html_that_was_cut() -> None:
    body = b'<a href="https://files.test/pip-1.0.whl">x</a><a href="https://files.test/pip-1.1.wh'
    assert file_links(PAGE, "text/html", body) == ("https://files.test/pip-1.0.whl",)


@pytest.mark.parametrize("kind", ["application/vnd.pypi.simple.v1+json", "application/json", "Application/JSON; x=y"])
def test_json(kind: str) -> None:
    body = json.dumps(
        {"files": [{"url": "https://files.test/pip-1.0.whl"}, {"url": "../pip-1.1.tar.gz"}, {"url": 5}, 7]}
    )
    assert file_links(PAGE, kind, body.encode()) == (
        "https://files.test/pip-1.0.whl",
        "https://index.test/simple/pip-1.1.tar.gz",
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"files": [{"url": "https://files.te'),
        ("application/json", b"[]"),
        ("application/json", b'{"files": {}}'),
        ("application/json", b"[" * 100_000),
        ("image/png", b"\x89PNG"),
    ],
)
def test_other_pages_are_unreadable(kind: str, body: bytes) -> None:
    with pytest.raises(UnreadableIndex):
        file_links(PAGE, kind, body)


def test_roots() -> None:
    root = "https://index.test/simple/"
    html = b'<a href="/simple/first/">first</a><a href="second/">second</a><a href="https://elsewhere.test/x/">x</a>'
    assert project_pages(root, "text/html", html) == (f"{root}first/", f"{root}second/")
    body = json.dumps({"projects": [{"name": "first"}, {"name": 5}]}).encode()
    assert project_pages(root, "application/vnd.pypi.simple.v1+json", body) == (f"{root}first/",)


@given(st.binary(max_size=200) | st.text(alphabet='<a href="/:[]&#x>', max_size=80).map(str.encode))
def test_any_bytes_are_a_page_or_unreadable(body: bytes) -> None:
    for kind in ("text/html", "application/json", ""):
        try:
            links = file_links(PAGE, kind, body)
        except UnreadableIndex:
            continue
        assert all(isinstance(link, str) for link in links)
