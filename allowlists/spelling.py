"""The nearest valid spelling of a bad rule entry, for its error message."""

from doorward.allowlists.pattern import Kind, MalformedPattern, Pattern, Ports, parse_pattern
from doorward.allowlists.suffixes import SuffixKind, suffix_kind

_QUOTES = "'\"`<>,;"


def suggest(entry: str, *, wildcard_above_suffix: bool) -> str | None:
    """A spelling that parses, or None where only the writer can know what was meant.

    `wildcard_above_suffix` tells whether `*.com` may be suggested: it may for a deny.
    """
    import re  # only where words are made for a person

    text = re.sub(r"\s+", "", entry).strip(_QUOTES)
    text = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", text)  # RFC 3986 §3.1 scheme
    text = text.rpartition("@")[2] if not text.startswith("@") else text
    for candidate in _candidates(text):
        try:
            pattern, _ = parse_pattern(candidate)
        except MalformedPattern:
            continue
        if wildcard_above_suffix or not above_registry_suffix(pattern):
            return candidate.lower()
        return f"*.NAME.{pattern.name}"
    return None


def above_registry_suffix(pattern: Pattern) -> bool:
    """True for `*.com` and `**.co.uk`: the wildcard would cover names of strangers."""
    return pattern.kind in {Kind.BELOW, Kind.ZONE} and suffix_kind(pattern.name) is SuffixKind.REGISTRY


def canonical(pattern: Pattern, ports: Ports | None) -> str:
    """One spelling for one meaning; parse_pattern reads it back."""
    if ports is None:
        return pattern.text
    ((low, high),) = ports
    port = "*" if (low, high) == (1, 65535) else str(low) if low == high else f"{low}-{high}"
    return f"{pattern.text}:{port}"


def _candidates(text: str) -> list[str]:
    import re  # only where words are made for a person

    plain = re.split(r"[/?#]", text)[0]
    found = [text, _block(text), plain]
    host, colon, port = plain.rpartition(":")
    if plain.count(":") > 1 and "[" not in plain:
        found.append(f"[{plain}]")
        host, port = plain, ""
    elif not colon:
        host, port = plain, ""
    else:
        found.append(host)  # the port was the fault
    tail = f":{port}" if port else ""
    host = re.sub(r"\.{2,}", ".", host).strip(".")  # `.a.test` and `a..test` lose the empty label
    found.append(host + tail)
    leading = re.fullmatch(r"(?:\*+\.?)+([^*]+)", host)
    if leading is not None:
        # `*a.test` and `**a.test` want a dot, `*.*.test` has one star too many; elsewhere a star's meaning is anyone's
        # guess, and a guess would open too much
        found.append(f"*.{leading[1]}{tail}")
    return [candidate for candidate in dict.fromkeys(found) if candidate]


def _block(text: str) -> str:
    """`10.0.0.5/8` with the bits beyond the length cleared; "" for all else."""
    from ipaddress import ip_network

    try:
        return str(ip_network(text.strip("[]"), strict=False)) if "/" in text else ""
    except ValueError:
        return ""
