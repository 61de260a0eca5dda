r"""Windows paths under their many spellings. Pure: no Windows is asked."""

import pytest

from doorward.launcher import windows_paths as paths

SAME = [
    [r"\\?\C:\a", "C:/a", r"c:\A", r"C:\a\.", "C:\\a\\", r"C:\b\..\a", r"\\?\c:\a" "\\", r"C:\a. "],
    [r"\\?\UNC\h\s", r"\\host\s".replace("host", "h"), "//h/s", r"\\H\S", r"\\?\unc\h\s" "\\"],
    [r"\\host\s"],
    [r"\\h\s\a", r"\\?\UNC\h\s\a"],
    ["C:\\", "c:/", "\\\\?\\C:\\"],
]


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_one_key_for_every_spelling_of_a_path(group):
    """P-PL-06."""
    assert len({paths.key(path) for path in group}) == 1


def test_what_differs_has_different_keys():
    """P-PL-06: a share is not a drive."""
    keys = [paths.key(group[0]) for group in SAME]
    assert len(set(keys)) == len(keys)
    assert paths.key(r"C:\a") != paths.key(r"D:\a")


@pytest.mark.parametrize(
    "path",
    ["\\\\?\\C:\\a.", "\\\\?\\C:\\a ", r"\\?\C:\a/b", r"\\.\PhysicalDrive0", "//?/C:/a", "C:\\a\0b", "\\??\\C:\\a"],
)
def test_what_has_no_plain_spelling_is_refused(path):
    with pytest.raises(ValueError, match=r"."):
        paths.plain(path)


def test_plain_keeps_the_letters():
    assert paths.plain(r"\\?\C:\Users\Ada") == r"C:\Users\Ada"
    assert paths.plain("C:/Users/Ada/") == r"C:\Users\Ada"
    assert paths.plain(r"\\?\UNC\Host\Share\a") == r"\\Host\Share\a"


def test_above_and_below():
    assert paths.is_below(r"\\?\C:\A\b", "c:/a")
    assert not paths.is_below(r"C:\ab", r"C:\a")
    assert not paths.is_below(r"C:\a", r"C:\a")
    assert paths.is_below(r"C:\a", "C:\\")
    assert paths.depth(r"C:\a\b") > paths.depth("C:/a")


@pytest.mark.parametrize(
    ("path", "absolute"),
    [(r"C:\a", True), ("C:/a", True), (r"\\h\s\a", True), (r"\\?\C:\a", True), (r"C:a", False), (r"\a", False)],
)  # fmt: skip
def test_what_depends_on_where_one_stands(path, absolute):
    assert paths.is_absolute(path) is absolute
