"""The simple repository API of Python package indexes: which files a page links to, which projects a root lists.

HTML as PEP 503, JSON as PEP 691. Pages are read leniently, as installers do; a body that was cut still yields what
came before the cut (HTML).
"""

import json
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

# what an installer takes for a file among a page's links; the rest are home pages and the like
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.lz", ".tlz", ".tar")


class UnreadableIndex(ValueError):
    """The page is neither form of the simple API."""


def file_links(url: str, content_type: str, body: bytes) -> tuple[str, ...]:
    """Absolute URLs of the archives a project page (or a page of links) names, in order. Raises UnreadableIndex."""
    links = _json_files(body) if _is_json(content_type) else None
    if links is None:
        base, links = _html_links(content_type, body)
        url = _joined(url, base) or url
    absolute = (_joined(url, link) for link in links)
    return tuple(dict.fromkeys(link for link in absolute if link is not None and _is_archive(link)))


def project_pages(url: str, content_type: str, body: bytes) -> tuple[str, ...]:
    """Absolute URLs of the project pages an index root lists, in order. Raises UnreadableIndex."""
    if _is_json(content_type):
        names = [row.get("name") for row in _rows(body, "projects")]
        return tuple(f"{url.rstrip('/')}/{name}/" for name in names if isinstance(name, str) and name)
    base, links = _html_links(content_type, body)
    url = _joined(url, base) or url
    absolute = (_joined(url, link) for link in links)
    return tuple(dict.fromkeys(link for link in absolute if link is not None and link.startswith(url)))


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _json_files(body: bytes) -> list[str]:
    links = [row.get("url") for row in _rows(body, "files")]
    return [link for link in links if isinstance(link, str)]


def _rows(body: bytes, key: str) -> list[dict[str, object]]:
    try:
        page = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableIndex("the page is not valid JSON") from None
    rows = page.get(key) if isinstance(page, dict) else None
    if not isinstance(rows, list):
        raise UnreadableIndex(f"the JSON page lists no {key}")
    return [row for row in rows if isinstance(row, dict)]


def _html_links(content_type: str, body: bytes) -> tuple[str, list[str]]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind and not (kind.endswith(("html", "+html", "xhtml+xml"))):
        raise UnreadableIndex(f"the page is {kind}, neither HTML nor JSON")
    parser = _Links()
    parser.feed(body.decode("utf-8", "replace"))
    parser.close()
    return parser.base, parser.links


class _Links(HTMLParser):
    """Anchors, and the first base."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = next((value for name, value in attrs if name == "href" and value), None)
        if href is None:
            return
        if tag == "a":
            self.links.append(href)
        elif tag == "base" and not self.base:
            self.base = href


def _joined(url: str, link: str) -> str | None:
    try:
        return urljoin(url, link.strip())
    except ValueError:  # a bracket out of place
        return None


def _is_archive(link: str) -> bool:
    return urlsplit(link).path.lower().endswith(_ARCHIVES)
