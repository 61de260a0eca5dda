"""Finding sessions by what they did: the index and the files alone give the same answer."""

import os
from collections.abc import Callable, Iterator

import pytest

from doorward.sessions import items
from doorward.sessions.filters import Filter, match_expression
from doorward.sessions.home import Home
from doorward.sessions.lifecycle import archive
from doorward.sessions.listing import list_sessions
from doorward.sessions.lookup import find_session
from doorward.sessions.mirror import Mirror, mirrored_listing
from doorward.sessions.rollout import Rollout
from doorward.sessions.search_text import MESSAGE_LIMIT, texts_of

Listed = Callable[[Filter], set[str | None]]


def run(rollout: Rollout, *argv: str, hosts: tuple[str, ...] = (), refused: bool = False) -> None:
    turn = rollout.turns + 1
    for item in items.turn_start(rollout.id, turn, argv=argv, cwd="/", approval_policy="never", sandbox_policy={}):
        rollout.append(*item)
    rollout.append(*items.verdict(turn, {"verdict": "allow", "gate": "approval", "reasons": []}, argv=argv, cwd="/"))
    for host in hosts:
        rollout.append("network", {"turn": turn, "decision": "allow", "host": host, "port": 443})
    if refused:
        rollout.append("refusal", {"turn": turn, "host": "evil.test", "port": 80})
    rollout.append(*items.observation(turn, exit_code=0, output={"head": '"host":"not.a.host" secretword', "tail": ""}))
    rollout.append(*items.turn_end(rollout.id, turn))


@pytest.fixture
def filled(home: Home) -> Home:
    for name, cwd, argv, hosts, refused in (
        ("build", "/code/app", ("make", "-j2", "all"), ("pypi.example", "files.example"), False),
        ("fetch", "/code/app/deep", ("curl", "https://a.test/x y"), ("a.test",), True),
        ("other", "/code/apple", ("git", "reset", "--hard", "HEAD~3"), (), False),
        ("bytes", "/code/\udcff", ("printf", "\udcfe%s"), ("2001:db8::1",), False),
    ):
        with Rollout.create(home, cwd=cwd, name=name) as rollout:
            run(rollout, *argv, hosts=hosts, refused=refused)
    with Rollout.create(home, cwd="/talk", name="talk") as rollout:
        rollout.append(*items.message("user", "please explain the tests\u2028ünïcödé"))
        rollout.append("event_msg", {"type": "agent_message", "message": "they are green"})
        rollout.append(*items.renamed(rollout.id, "nightly chat"))
    return home


@pytest.fixture(params=["index", "files"])
def listed(request: pytest.FixtureRequest, filled: Home) -> Iterator[Listed]:
    """The names that a filter gives."""
    list_by = mirrored_listing if request.param == "index" else list_sessions

    def names(only: Filter) -> set[str | None]:
        listing = list_by(filled, only=only)
        assert listing.problems == ()
        return {session.name for session in listing.sessions}

    yield names


EVERY = {"build", "fetch", "other", "bytes", "nightly chat"}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (Filter(), EVERY),
        (Filter(cwd="/code/app"), {"build", "fetch"}),
        (Filter(cwd="/code/app/"), {"build", "fetch"}),
        (Filter(cwd="/code/\udcff"), {"bytes"}),
        (Filter(cwd="/"), EVERY),
        (Filter(cwd="/wor"), set()),
        (Filter(refused=True), {"fetch"}),
        (Filter(host="A.test"), {"fetch"}),
        (Filter(host="evil.test"), {"fetch"}),
        (Filter(host="*.example"), {"build"}),
        (Filter(host="test"), set()),
        (Filter(host="[2001:db8::1]"), {"bytes"}),
        (Filter(host="not.a.host"), set()),
        (Filter(search="reset --hard"), {"other"}),
        (Filter(search="mak"), {"build"}),
        (Filter(search="ake"), set()),
        (Filter(search="files.example"), {"build"}),
        (Filter(search="a.test"), {"fetch"}),
        (Filter(search="explain green"), {"nightly chat"}),
        (Filter(search="ÜNÏCÖDÉ"), {"nightly chat"}),
        (Filter(search="nightly"), {"nightly chat"}),
        (Filter(search="secretword"), set()),
        (Filter(search='" OR * NEAR('), set()),
        (Filter(search="--"), set()),
        (Filter(since="2000-01-01T00:00:00.000Z"), EVERY),
        (Filter(since="2999-01-01T00:00:00.000Z"), set()),
        (Filter(cwd="/code/app", refused=True, host="a.test", search="curl"), {"fetch"}),
    ],
)
def test_filters(listed: Listed, only: Filter, expected: set[str]) -> None:
    assert listed(only) == expected


def test_what_is_appended_is_found_without_reading_the_rest(filled: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    mirrored_listing(filled)
    session = find_session(filled, "build")
    with Rollout.open(filled, session.path) as rollout:
        run(rollout, "cargo", "test", hosts=("crates.example",))
    starts = []
    monkeypatch.setattr(
        "doorward.sessions.mirror.texts_of", lambda fd, start, size: starts.append(start) or texts_of(fd, start, size)
    )
    for search in ("cargo", "make", "crates.example", "pypi.example"):
        assert [found.id for found in mirrored_listing(filled, only=Filter(search=search)).sessions] == [session.id]
    assert len(starts) == 1
    assert starts[0] > 0


def test_an_archived_one_is_found_where_archived_ones_are_asked_for(filled: Home) -> None:
    archive(filled, find_session(filled, "fetch"))
    assert mirrored_listing(filled, only=Filter(host="a.test")).sessions == ()
    (found,) = mirrored_listing(filled, archived=None, only=Filter(host="a.test")).sessions
    assert found.archived


def test_a_deleted_one_leaves_no_words(filled: Home) -> None:
    mirrored_listing(filled)
    os.unlink(find_session(filled, "fetch").path)
    with Mirror.open(filled) as mirror:
        mirror.refresh()
        for query, expected in (
            ("SELECT count(*) FROM words WHERE words MATCH 'curl'", 0),
            ("SELECT count(*) FROM hosts WHERE host = 'a.test'", 0),
            ("SELECT count(*) FROM sessions", 4),
        ):
            assert mirror._database.execute(query).fetchone() == (expected,)


def test_a_long_message_is_searched_at_its_beginning(home: Home) -> None:
    with Rollout.create(home, cwd="/") as rollout:
        rollout.append(*items.message("user", "early " + "x" * MESSAGE_LIMIT + " late"))
    assert len(mirrored_listing(home, only=Filter(search="early")).sessions) == 1
    assert mirrored_listing(home, only=Filter(search="late")).sessions == ()


def test_the_words_of_a_query_cannot_be_operators() -> None:
    assert match_expression('a OR "b" NOT c*') == '"a"* "or"* "b"* "not"* "c"*'
    assert match_expression("files.example") == '"files example"*'
    assert match_expression("--") == '""'
