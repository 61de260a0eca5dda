"""Foreign text inside a sentence or an option: one line, nothing a terminal or a shell would act on."""


_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%=,")
"""Characters of a word that needs no quotes."""


def plain(text: str, limit: int = 120) -> str:
    """`text` for a sentence: at most `limit` characters, control characters and lone surrogates as escapes."""
    shown = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if shown.isprintable():
        return shown
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
        for char in shown
    )


def shell_word(text: str) -> str:
    """`text` as a shell takes it for one word (shlex would be one more import on the start-up path)."""
    if text and _BARE.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def trusting(folder: str) -> str:
    """The command that trusts `folder`."""
    return f"doorward trust {shell_word(folder)}"
