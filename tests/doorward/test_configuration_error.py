"""How a mistake reads."""

from doorward.configuration_error import ConfigurationError, Problem, nearest


def test_a_problem_is_one_line_with_what_is_known() -> None:
    assert str(Problem("/h/config.toml", 3, "a.b", "is wrong", "write c")) == "/h/config.toml:3: a.b: is wrong; write c"
    assert str(Problem("--allow", None, "", "is wrong")) == "--allow: is wrong"


def test_foreign_text_cannot_drive_a_terminal() -> None:
    problem = Problem("/h/\x1b[2J", None, "k\n", "not \u202ex")
    assert str(problem).isprintable() and str(ConfigurationError([problem])).isprintable()


def test_the_nearest_word() -> None:
    words = ["read-only", "workspace-write", "full"]
    assert nearest("READONLY", words) == "read-only"
    assert nearest("workspace_write", words) == "workspace-write"
    assert nearest("zebra", words) is None
