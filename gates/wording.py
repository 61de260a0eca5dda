"""Foreign text inside a sentence or an option: one line, nothing a terminal or a shell would act on."""


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
    if text and text.isascii() and all(char.isalnum() or char in "/._-+:@%=," for char in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def trust_line(folder: str) -> str:
    """The line of $DOORWARD_HOME/config.toml that trusts `folder`, a TOML basic string (TOML 1.0, "String")."""
    quoted = "".join(
        f"\\{char}" if char in '"\\' else f"\\u{ord(char):04X}" if char < " " or char == "\x7f" else char
        for char in folder
    )
    return f'projects."{quoted}".trust_level = "trusted"'


def trusting(folder: str) -> str:
    """What to do to trust `folder`, for a sentence."""
    return f"write `{trust_line(folder)}` at the top of $DOORWARD_HOME/config.toml"
