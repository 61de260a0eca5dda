"""Presets that let a tool read and not write: rules about requests, so that a run must look into them.

- `@pip-install`, `@npm-install`: the hosts of `@pip` and `@npm`, to download from. Publishing needs PUT or POST.
- `@git-fetch:HOST/PATH`: clone and fetch from the repositories there. A push asks for another service, and sends to it.
"""

from collections.abc import Iterable, Mapping

from doorward.allowlists.host import MalformedHost, authority_text, parse_rule_host_port
from doorward.allowlists.paths import MalformedGlob, parse_glob
from doorward.allowlists.pattern import WEB_PORTS, has_port
from doorward.allowlists.presets import PresetHost, PresetUnavailable

Table = Mapping[str, object]

GIT_FETCH = "git-fetch"
BASES = {"pip-install": "pip", "npm-install": "npm"}
"""The preset whose hosts each of them reads from."""

_AUDIT = ("/-/npm/v1/security/advisories/bulk", "/-/npm/v1/security/audits/quick", "/-/npm/v1/security/audits")
"""What `npm install` asks by POST: whether any of a list of packages has a known fault."""


def reading_from(name: str, hosts: Iterable[PresetHost]) -> tuple[tuple[Table, str], ...]:
    """The rules of a preset in BASES, each with why it is there, from the hosts of its base."""
    rules: list[tuple[Table, str]] = []
    for each in hosts:
        rules.append(({"host": each.entry, "methods": ["GET", "HEAD"]}, f"{each.why}, to read"))
        if name == "npm-install":
            paths = [path for known in _AUDIT for path in (known, f"/**{known}")]
            rules.append(
                ({"host": each.entry, "methods": ["POST"], "paths": paths}, "what npm asks about known faults")
            )
    return tuple(rules)


def git_fetch(argument: str) -> tuple[tuple[Table, str], ...]:
    """The rules for `HOST[:PORT]/OWNER/REPO`; the path may have globs, `.git` behind it or not.

    The smart protocol of git over HTTP (gitprotocol-http): the service is named in the query of the first request, and
    is the last segment of the second. Raises PresetUnavailable.
    """
    place, slash, path = argument.partition("/")
    remedy = f"write @{GIT_FETCH}:HOST/OWNER/REPO, such as @{GIT_FETCH}:git.example/team/project"
    try:
        host, port = parse_rule_host_port(place, 443)
        path = parse_glob(f"/{path.rstrip('/').removesuffix('.git')}")
    except (MalformedHost, MalformedGlob) as error:
        raise PresetUnavailable(f"{argument!r} names no repository: {error}", remedy) from None
    if not slash or path == "/":
        raise PresetUnavailable(f"{argument!r} names a host and no repository", remedy)
    entry = place if has_port(WEB_PORTS, port) else authority_text(host, port)
    both = (path, f"{path}.git") if not path.endswith("**") else (path,)
    why = f"fetch from {place}{path}"
    return (
        (
            {
                "host": entry,
                "methods": ["GET", "HEAD"],
                "paths": [f"{each}/info/refs" for each in both],
                "query": {"service": ["git-upload-pack"]},
            },
            why,
        ),
        (
            {
                "host": entry,
                "methods": ["POST"],
                "paths": [f"{each}/git-upload-pack" for each in both],
                "headers": {"content-type": ["application/x-git-upload-pack-request"]},
            },
            why,
        ),
    )
