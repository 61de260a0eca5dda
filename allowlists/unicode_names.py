"""Unicode host names to the form DNS carries (IDNA, UTS 46 non-transitional). Imported only when one turns up."""

import idna

from doorward.allowlists.host import MalformedHost


def to_ascii(name: str) -> str:
    """The name with every label mapped by UTS 46 and turned into its A-label. Raises MalformedHost."""
    try:
        mapped = idna.uts46_remap(name, std3_rules=False, transitional=False)
        return ".".join(_a_label(label) for label in mapped.split("."))
    except (idna.IDNAError, UnicodeError) as error:
        raise MalformedHost(f"the name is not valid Unicode for a host name: {error}") from None


def _a_label(label: str) -> str:
    # ASCII labels keep to the rules of parse_host (underscores, a doubled hyphen in third place), not IDNA's
    return label if label.isascii() else idna.alabel(label).decode("ascii")
