"""Writing a rollout: one record a write, torn tails, one writer, and what a session resumes from."""

import functools
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doorward.sessions import items
from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.home import Home
from doorward.sessions.line import Line
from doorward.sessions.rollout import Rollout, RolloutBusy, RolloutError
from doorward.sessions.verify import verify
from doorward.start_json import dumps

Lines = Callable[[str], list[Line]]
Damages = Callable[[str], list[Damage]]
Child = Callable[[Callable[[], object]], tuple[object, int]]

ID = "019ad1d2-0000-7000-8000-000000000001"


def start(rollout: Rollout) -> int:
    turn = rollout.turns + 1
    for item in items.turn_start(
        rollout.id, turn, argv=["true"], cwd="/work", approval_policy="never", sandbox_policy={"type": "read-only"}
    ):
        rollout.append(*item)
    return turn


def ordinals(lines: list[Line]) -> list[int | None]:
    return [line.ordinal for line in lines]


# --- a new session


def test_a_new_session_is_one_file_with_its_first_record(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work", name="mine", meta={"cli_version": "1.2"}) as rollout:
        assert rollout.turns == 0
    found = [os.path.join(folder, name) for folder, _, names in os.walk(home.path) for name in names]
    assert found == [rollout.path]
    (line,) = lines(rollout.path)
    assert (line.type, line.ordinal) == ("session_meta", 0)
    assert line.payload["id"] == rollout.id
    assert (line.payload["cwd"], line.payload["name"], line.payload["cli_version"]) == ("/work", "mine", "1.2")
    assert line.payload["timestamp"] <= line.timestamp


def test_the_path_tells_time_and_id(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        folder, name = os.path.split(rollout.path)
        assert name.endswith(f"-{rollout.id}.jsonl")
        assert folder == f"{home.sessions}/{name[8:12]}/{name[13:15]}/{name[16:18]}"


def test_append_gives_the_line_that_is_in_the_file(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        written = rollout.append("network", {"turn": 1, "host": "a.test"})
        again = rollout.append("network", {"turn": 1, "host": "b.test"})
    assert [line._replace(number=None) for line in lines(rollout.path)[1:]] == [written, again]
    assert rollout.chain == again.metadata["chain"]


def counted_writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the writes from now on."""
    sizes: list[int] = []
    write = os.write

    def counted(descriptor: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    return sizes


def test_a_record_is_one_write(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        sizes = counted_writes(monkeypatch)
        rollout.append("network", {"text": "x" * 300_000})
        monkeypatch.undo()
    assert len(sizes) == 1


def test_records_that_come_together_are_one_write(
    home: Home, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        sizes = counted_writes(monkeypatch)
        written = rollout.append_together([("network", {"turn": 1}), ("refusal", {"turn": 1}), ("network", {})])
        monkeypatch.undo()
        written.append(rollout.append("network", {}))
    assert len(sizes) == 1
    assert ordinals(written) == [1, 2, 3, 4]
    assert [line.metadata["refused"] for line in written] == [0, 1, 1, 1]
    assert [line._replace(number=None) for line in lines(rollout.path)[1:]] == written
    assert verify(rollout.path).intact


def test_payloads_that_are_json_already_stand_as_they_are(home: Home, lines: Lines) -> None:
    payloads = [("network", {"turn": 1, "é": 1.5}), ("refusal", {"turn": 1}), ("event_msg", {"type": "published"})]
    encoded = [(type, payload, dumps(payload)) for type, payload in payloads]
    with Rollout.create(home, cwd="/work") as rollout:
        assert rollout.append_encoded(encoded) == 1
        assert rollout.append_together(payloads)[0].ordinal == 4
        assert rollout.totals.refused == 2
    with open(rollout.path, encoding="ascii") as file:
        kept = [line.partition('"type"')[2] for line in file][1:]
    for one, other in zip(kept[:3], kept[3:], strict=True):
        assert one.partition('"metadata"')[0] == other.partition('"metadata"')[0]
    assert [line.metadata["refused"] for line in lines(rollout.path)[1:]] == [0, 1, 1, 1, 2, 2]
    assert verify(rollout.path).intact


def test_an_encoded_payload_accounts_for_a_torn_line_before_it(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        with open(rollout.path, "ab") as file:
            file.write(b'{"torn')
        assert rollout.append_encoded([("network", {"a": 1}, '{"a":1}')]) == 1
        assert rollout.append("network", {}).ordinal == 2
    last = lines(rollout.path)[-2:]
    assert last[0].metadata["unchained"]["bytes"] == 7
    assert "unchained" not in last[1].metadata
    assert verify(rollout.path).intact


def test_of_encoded_payloads_what_is_dropped_is_refused(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout, pytest.raises(ValueError, match="not kept"):
        rollout.append_encoded([("event_msg", {"type": "warning"}, '{"type":"warning"}')])


@pytest.mark.parametrize("wrong", [("network", {"x": object()}), ("event_msg", {"type": "agent_message_delta"})])
def test_of_records_that_come_together_all_can_be_written_or_none(home: Home, lines: Lines, wrong: Any) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        with pytest.raises((RolloutError, ValueError)):
            rollout.append_together([("network", {}), wrong])
        assert rollout.append("network", {}).ordinal == 1
    assert len(lines(rollout.path)) == 2
    assert verify(rollout.path).intact


def test_text_comes_back_as_it_was(home: Home, lines: Lines) -> None:
    """P-RS-03: separators that are no line ends; P-RS-02: lone surrogates; P-TT-11: bytes that are not UTF-8."""
    text = "a\u2028b\u2029c\u0085d\re\nf\x00g\x1ch\x0ci\ud83dj" + os.fsdecode(b"\xff\xfe") + "é😀"
    with Rollout.create(home, cwd=os.fsdecode(b"/srv/a\xff")) as rollout:
        rollout.append("exec", {"turn": 1, "argv": [text], text: 1})
    first, second = lines(rollout.path)
    assert second.payload == {"turn": 1, "argv": [text], text: 1}
    assert os.fsencode(first.payload["cwd"]) == b"/srv/a\xff"
    raw = Path(rollout.path).read_bytes()
    assert raw.isascii()
    assert rb"\udcff" in raw
    assert raw.count(b"\n") == 2


def test_totals_stand_in_every_line(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        start(rollout)
        rollout.append(*items.refusal(1, {"status": "blocked"}))
        rollout.append(*items.turn_end(rollout.id, 1))
        rollout.append(*items.renamed(rollout.id, "new"))
        start(rollout)
    seen = [
        (line.metadata["turn"], line.metadata["open"], line.metadata["refused"], line.metadata.get("name"))
        for line in lines(rollout.path)
    ]
    assert seen == [
        (0, False, 0, None),
        *[(1, True, 0, None)] * 3,
        (1, True, 1, None),
        (1, False, 1, None),
        (1, False, 1, "new"),
        *[(2, True, 1, "new")] * 3,
    ]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes"])
def test_what_json_cannot_say_is_refused_and_nothing_is_written(home: Home, value: Any) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        before = Path(rollout.path).read_bytes()
        with pytest.raises(RolloutError, match="cannot be written as JSON"):
            rollout.append("network", {"value": value})
        assert Path(rollout.path).read_bytes() == before
        assert rollout.append("network", {}).ordinal == 1


def test_what_is_dropped_is_not_appended(home: Home) -> None:
    with (
        Rollout.create(home, cwd="/work") as rollout,
        pytest.raises(ValueError, match="exec_command_output_delta is not kept"),
    ):
        rollout.append("event_msg", {"type": "exec_command_output_delta"})


def test_closed_means_closed(home: Home) -> None:
    rollout = Rollout.create(home, cwd="/work")
    rollout.close()
    rollout.close()
    with pytest.raises(RolloutError, match="is closed"):
        rollout.append("network", {})


def test_a_deleted_file_is_noticed(home: Home) -> None:
    """A record that nobody can ever read is not written."""
    with Rollout.create(home, cwd="/work") as rollout:
        os.unlink(rollout.path)
        with pytest.raises(RolloutError, match="was deleted"):
            rollout.append("network", {})


def test_a_file_cut_by_others_is_noticed(home: Home) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        rollout.append("network", {})
        os.truncate(rollout.path, 10)
        with pytest.raises(RolloutError, match="has become shorter"):
            rollout.append("network", {})


def test_an_exception_right_after_the_write(home: Home, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler that raises: the record is there though `append` never returned, and its number is taken."""
    write = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        write(descriptor, data)
        raise KeyboardInterrupt

    with Rollout.create(home, cwd="/work") as rollout:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                rollout.append("refusal", {"turn": 1})
        assert rollout.append("refusal", {"turn": 1}).ordinal == 2
        assert rollout.totals.refused == 2
    assert ordinals(lines(rollout.path)) == [0, 1, 2]
    assert verify(rollout.path).notes == ()
    assert verify(rollout.path).intact


def test_numbers_of_others_are_not_used_again(home: Home, lines: Lines) -> None:
    """P-RS-05: who appends without asking for the lock."""
    with Rollout.create(home, cwd="/work") as rollout:
        with open(rollout.path, "a") as file:
            file.write('{"type": "note", "ordinal": 1, "payload": {}}\n')
        rollout.append("network", {})
    assert ordinals(lines(rollout.path)) == [0, 1, 2]
    assert verify(rollout.path).intact


def test_sync_needs_the_disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        rollout.sync()

        def fails(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("doorward.sessions.rollout._to_disk", fails)
        with pytest.raises(RolloutError, match="Input/output error"):
            rollout.sync()


# --- going on


def test_numbers_chain_and_turns_go_on(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        start(rollout)
        rollout.append(*items.turn_end(rollout.id, 1))
    with Rollout.open(home, rollout.path) as again:
        assert (again.id, again.turns, again.interrupted, again.notices) == (rollout.id, 1, None, ())
        assert start(again) == 2
    assert ordinals(lines(rollout.path)) == list(range(8))
    assert verify(rollout.path).intact


def test_half_a_line_then_more(home: Home, new: Callable[..., str], lines: Lines, damages: Damages) -> None:
    """P-RS-01: four records and one reported damage; nothing glued, nothing cut."""
    path = new(2)
    before = Path(path).read_bytes()
    with open(path, "ab") as file:
        file.write(b'{"a":"b')
    with Rollout.open(home, path) as rollout:
        assert rollout.notices == (f"1 line at the end cannot be read and are passed over: {path}",)
        rollout.append("network", {"turn": 1, "index": 2})
    assert [line.payload.get("index") for line in lines(path)] == [None, 0, 1, 2]
    assert ordinals(lines(path)) == [0, 1, 2, 3]
    (damage,) = damages(path)
    assert (damage.offset, damage.length, damage.number) == (len(before), 7, 4)
    assert Path(path).read_bytes().startswith(before + b'{"a":"b\n{"timestamp"')
    result = verify(path)
    assert result.intact
    assert result.notes == ("line 4: not linked, but accounted for by line 5 (torn by a crash, or foreign)",)


def test_a_whole_record_without_its_newline_counts(home: Home, new: Callable[..., str], lines: Lines) -> None:
    """P-RS-01: only the LF was torn off."""
    path = new(2)
    os.truncate(path, os.path.getsize(path) - 1)
    with Rollout.open(home, path) as rollout:
        assert rollout.notices == ()
        assert rollout.append("network", {}).ordinal == 3
    assert ordinals(lines(path)) == [0, 1, 2, 3]
    assert verify(path) == verify(path)._replace(finding=None, linked=4, notes=())


def test_torn_at_every_byte(home: Home, new: Callable[..., str], lines: Lines, damages: Damages) -> None:
    """P-RS-01: whatever is left of the last write, the session goes on and its chain holds."""
    path = new(2)
    whole = Path(path).read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        Path(path).write_bytes(whole[:cut])
        with Rollout.open(home, path) as rollout:
            rollout.append("network", {"after": cut})
        good = lines(path)
        assert ordinals(good) == list(range(len(good)))
        assert good[-1].payload == {"after": cut}
        assert verify(path).intact, cut
        torn = whole[first:cut].rpartition(b"\n")[2]
        assert len(damages(path)) == (1 if torn and torn not in whole.split(b"\n") else 0)


def test_an_unknown_record_at_the_end_keeps_its_number(home: Home, new: Callable[..., str], lines: Lines) -> None:
    """P-RS-06: the next number follows what physically stands there."""
    path = new(1)
    with open(path, "a") as file:
        file.write(json.dumps({"timestamp": "", "ordinal": 2, "type": "of_the_future", "payload": {"x": 1}}) + "\n")
    with Rollout.open(home, path) as rollout:
        assert rollout.append("network", {}).ordinal == 3
    assert ordinals(lines(path)) == [0, 1, 2, 3]
    assert verify(path).intact


def test_old_duplicate_numbers_do_no_harm(home: Home, write: Callable[..., str], lines: Lines) -> None:
    """P-RS-06: a file that another writer left with the same number twice."""
    path = write(
        ID, [{"ordinal": number, "type": "event_msg", "payload": {"type": "user_message"}} for number in (0, 1, 1, 2)]
    )
    with Rollout.open(home, path) as rollout:
        rollout.append("network", {})
    assert ordinals(lines(path)) == [0, 1, 1, 2, 3]


def test_records_without_a_number(home: Home, write: Callable[..., str], lines: Lines) -> None:
    """P-RS-16: ten records with a number field, one without, then resume: numbering goes on, with a warning."""
    records: list[Any] = [
        {"ordinal": number, "type": "response_item", "payload": {"type": "message"}} for number in range(10)
    ]
    path = write(ID, [*records, {"type": "response_item", "payload": {"type": "message"}}])
    with Rollout.open(home, path) as rollout:
        assert rollout.notices == (f"the last 1 record carries no ordinal: {path}",)
        rollout.append("network", {})
    assert ordinals(lines(path))[-2:] == [None, 11]
    assert verify(path).intact


def test_a_file_of_another_program_goes_on(home: Home, write: Callable[..., str], lines: Lines) -> None:
    """P-RS-16: no numbers, no metadata; the turns are counted from its boundaries."""
    event: Callable[..., dict[str, Any]] = lambda **payload: {"type": "event_msg", "payload": payload}  # noqa: E731
    records = [event(type="task_started"), event(type="task_complete"), event(type="turn_started")]
    path = write(ID, [{"type": "session_meta", "payload": {"id": ID}}, *records])
    with Rollout.open(home, path) as rollout:
        assert (rollout.turns, rollout.interrupted) == (2, 2)
    assert ordinals(lines(path)) == [None] * 4 + [4]
    assert verify(path).intact


def test_a_long_foreign_tail_is_read_once_from_the_start(
    home: Home, new: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doorward.sessions.tail.SEARCH_LIMIT", 2000)
    path = new(1)
    with open(path, "a") as file:
        for _ in range(50):
            file.write(json.dumps({"type": "event_msg", "payload": {"type": "task_started", "pad": "x" * 100}}) + "\n")
            file.write("garbage\n")
    with Rollout.open(home, path) as rollout:
        assert rollout.turns == 50
        assert rollout.append("network", {}).ordinal == 2 + 50 + 1  # the mark of the interruption is one of them
    assert verify(path).intact


def test_what_others_append_meanwhile_is_passed_over(home: Home, lines: Lines) -> None:
    with Rollout.create(home, cwd="/work") as rollout:
        with open(rollout.path, "a") as file:
            file.write('{"type": "note", "payload": {}}\nhalf')
        rollout.append("network", {})
    assert [line.type for line in lines(rollout.path)] == ["session_meta", "note", "network"]
    assert verify(rollout.path).intact


def test_a_session_that_ended_inside_a_turn_is_marked_once(home: Home, lines: Lines) -> None:
    """P-RS-14: marked interrupted at the first resume; a second adds nothing."""
    with Rollout.create(home, cwd="/work") as rollout:
        start(rollout)
    with Rollout.open(home, rollout.path) as again:
        assert again.interrupted == 1
    marked = lines(rollout.path)
    assert marked[-1].payload == {
        "type": "turn_aborted",
        "turn_id": f"{rollout.id}#1",
        "reason": "interrupted",
        "turn": 1,
    }
    with Rollout.open(home, rollout.path) as third:
        assert third.interrupted is None
        assert len(lines(rollout.path)) == len(marked)
        assert start(third) == 2


def test_opening_reads_the_end_only(home: Home, new: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = new(0)
    with Rollout.open(home, path) as rollout:
        for _ in range(200):
            rollout.append("network", {"text": "x" * 10_000})
    read = 0
    pread = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, length, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    Rollout.open(home, path).close()
    assert read < 100_000 < os.path.getsize(path)


def test_a_giant_last_record_is_not_parsed(home: Home, new: Callable[..., str], lines: Lines) -> None:
    """P-RS-13: resume after a 3 MB record takes its number and link from its first and last bytes."""
    path = new(0)
    with Rollout.open(home, path) as rollout:
        rollout.append("event_msg", {"type": "task_started", "turn": 1, "text": '"}}\n' * 1_000_000})
        rollout.append("event_msg", {"type": "task_complete", "turn": 1, "text": "x" * 3_000_000})
    with Rollout.open(home, path) as again:
        assert (again.turns, again.interrupted) == (1, None)
        assert again.append("network", {}).ordinal == 3
    assert verify(path).intact


# --- what cannot be opened


def test_names_and_kinds_that_are_no_rollout(home: Home, new: Callable[..., str], tmp_path: Path) -> None:
    path = new()
    folder, name = os.path.split(path)
    link = f"{folder}/rollout-x-{ID}.jsonl"
    os.symlink(path, link)
    fifo = f"{folder}/rollout-y-{ID}.jsonl"
    os.mkfifo(fifo)
    directory = f"{folder}/rollout-z-{ID}.jsonl"
    os.mkdir(directory)
    empty = f"{folder}/rollout-e-{ID}.jsonl"
    Path(empty).touch()
    for bad, sentence in {
        link: "links are not read",
        fifo: "not a regular file",
        directory: "Is a directory",
        empty: "is empty",
        f"{folder}/other.jsonl": "not named as a rollout",
        f"{folder}/rollout-n-{ID}.jsonl": "is missing",
        f"{home.archived}/{name}": "doorward unarchive",
    }.items():
        with pytest.raises(RolloutError, match=sentence):
            Rollout.open(home, bad)


def test_an_unwritable_home_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RolloutError, match="file is not a directory"):
        Rollout.create(Home(str(tmp_path / "file" / "home")), cwd="/work")


# --- one writer


def test_the_second_writer_is_told_the_first(home: Home, in_child: Child) -> None:
    """P-RS-05: refused at open, with the pid."""
    with Rollout.create(home, cwd="/work") as rollout:
        with pytest.raises(RolloutBusy) as busy:
            Rollout.open(home, rollout.path)
        assert busy.value.pid == os.getpid()

        def second() -> object:
            try:
                Rollout.open(home, rollout.path)
            except RolloutBusy as error:
                return error.pid
            return "opened"

        assert in_child(second) == (os.getpid(), 0)
    assert in_child(second) == ("opened", 0)


def test_a_forked_child_does_not_keep_the_lock(home: Home) -> None:
    reader, writer = os.pipe()
    rollout = Rollout.create(home, cwd="/work")
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        rollout.close()
        Rollout.open(home, rollout.path).close()
    finally:
        os.close(reader)
        os.close(writer)
        os.waitpid(child, 0)


def test_killed_while_writing(home: Home, lines: Lines, damages: Damages) -> None:
    """P-RS-05: a writer is killed half way; every record it had reported is there, and the next writer goes on."""
    rollout = Rollout.create(home, cwd="/work")
    rollout.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with Rollout.open(home, rollout.path) as mine:
                for index in range(100_000):
                    mine.append("network", {"index": index, "pad": "x" * (index * 997 % 70_000)})
                    os.write(writer, b".")
        finally:
            os._exit(1)
    os.close(writer)
    reported = 0
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while reported < 500:
            reported += len(pipe.read(1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reported += len(pipe.readall())
    with Rollout.open(home, rollout.path) as again:
        again.append("network", {"index": "last"})
    good = lines(rollout.path)
    assert ordinals(good) == list(range(len(good)))
    assert len(good) - 2 in (reported, reported + 1)
    assert len(damages(rollout.path)) <= 1  # a write of several pages can be killed half way
    assert verify(rollout.path).intact


def scenario(home: Home) -> None:
    """A session that is made, closed, and opened again."""
    with Rollout.create(home, cwd="/work") as rollout:
        start(rollout)
        rollout.append(*items.turn_end(rollout.id, 1))
        rollout.sync()
    with Rollout.open(home, rollout.path) as rollout:
        rollout.append(*items.refusal(2, {"text": "x" * 100}))


def test_killed_at_every_write(home: Home, lines: Lines, in_child: Child) -> None:
    """SIGKILL in each write(2) of a session, with nothing, a part or all of it done: the next writer goes on."""
    write = os.write
    point = 0
    reached = True
    while reached:
        for share in (0.0, 0.5, 1.0):
            used = Home(f"{home.path}-{point}-{share}")

            def dies(used: Home = used, point: int = point, share: float = share) -> object:
                count = -1

                def killing(fd: int, data: bytes) -> int:
                    nonlocal count
                    count += 1
                    if count == point:
                        write(fd, bytes(data)[: int(len(data) * share)])
                        os.kill(os.getpid(), signal.SIGKILL)
                    return write(fd, data)

                # the parent is another process: nothing to put back
                setattr(os, "write", killing)  # noqa: B010
                scenario(used)
                setattr(os, "write", write)  # noqa: B010
                return "done"

            result, status = in_child(dies)
            reached = result is None
            assert reached == (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
            paths = [f"{folder}/{name}" for folder, _, names in os.walk(used.path) for name in names]
            assert len(paths) == 1
            if os.path.getsize(paths[0]) == 0:
                assert (point, share) == (0, 0.0)
                continue
            with Rollout.open(used, paths[0]) as rollout:
                rollout.append("network", {"last": True})
            good = lines(paths[0])
            assert ordinals(good) == list(range(len(good)))
            assert good[-1].payload == {"last": True}
            assert verify(paths[0]).intact
        point += 1
    assert point > 6


# --- a full disk


def test_full_at_every_byte(home: Home, lines: Lines, in_child: Child) -> None:
    """P-RS-12: with room for any number of bytes, the error comes at once, what was acknowledged is in the file, and
    with room again the session goes on."""

    def acknowledged(limit: int) -> object:
        used = Home(f"{home.path}-{limit}")
        written: list[object] = []
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        rollout = None
        try:
            rollout = Rollout.create(used, cwd="/work")
            for index in range(3):
                written.append(rollout.append("network", {"index": index}).ordinal)
        except RolloutError as error:
            written.append(str(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if rollout is None:
            return [written, None, None]
        again = rollout.append("network", {"again": True}).ordinal
        rollout.close()
        return [written, again, rollout.path]

    with Rollout.create(home, cwd="/work") as whole:
        first = os.path.getsize(whole.path)
        for index in range(3):
            whole.append("network", {"index": index})
    for limit in range(0, os.path.getsize(whole.path) + 2, 13):
        result, status = in_child(functools.partial(acknowledged, limit))
        assert status == 0
        assert isinstance(result, list)
        written, again, path = result
        if limit < first:
            assert path is None
            assert "bytes were taken" in written[0] or "File too large" in written[0]
            assert not any(names for _, _, names in os.walk(f"{home.path}-{limit}"))
            continue
        numbers = [entry for entry in written if isinstance(entry, int)]
        assert len(written) == len(numbers) + (limit < os.path.getsize(whole.path))
        good = lines(path)
        # of a record that failed, all but its LF may be there: then it counts after all
        assert ordinals(good) == list(range(len(good)))
        assert [0, *numbers] == ordinals(good)[: 1 + len(numbers)]
        assert len(good) - len(numbers) - 2 in (0, 1)
        assert good[-1].ordinal == again
        assert good[-1].payload == {"again": True}
        assert verify(path).intact


def test_records_that_come_together_torn_at_every_byte(
    home: Home, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-RS-12: the whole ones count, the rest stays on a line of its own, and the session goes on."""
    two = [("network", {"index": 0}), ("refusal", {"index": 1})]
    with Rollout.create(home, cwd="/work") as whole:
        ends = [line.length + 1 for line in whole.append_together(two)]
    write = os.write
    for size in range(0, sum(ends), 7):
        with Rollout.create(home, cwd="/work") as rollout:
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", lambda descriptor, data, size=size: write(descriptor, data[:size]))
                with pytest.raises(RolloutError, match=f"only {size} of"):
                    rollout.append_together(two)
            rollout.append("network", {"index": 2})
        found = [line.payload["index"] for line in lines(rollout.path)[1:]]
        first = [0] if size >= ends[0] - 1 else []
        assert found in ([*first, 2], [*first, 1, 2])  # all but its LF may be there: then it counts
        assert (1 in found) == (size >= sum(ends) - 1)
        assert verify(rollout.path).intact


def test_no_space_is_told_in_words(home: Home, monkeypatch: pytest.MonkeyPatch, lines: Lines) -> None:
    """P-RS-12: ENOSPC, several times, then room again."""
    with Rollout.create(home, cwd="/work") as rollout:

        def full(descriptor: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            for _ in range(3):
                with pytest.raises(RolloutError, match=r"cannot write to .*: No space left on device"):
                    rollout.append("network", {})
        assert rollout.append("network", {}).ordinal == 1
    assert len(lines(rollout.path)) == 2
    assert verify(rollout.path).intact


def test_a_torn_line_in_the_middle_says_so(home: Home, damages: Damages, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-RS-12: the part of a record that the disk took stays, on a line of its own."""
    write = os.write
    with Rollout.create(home, cwd="/work") as rollout:

        def partly(descriptor: int, data: bytes) -> int:
            return write(descriptor, data[:40])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", partly)
            with pytest.raises(RolloutError, match="only 40 of"):
                rollout.append("network", {})
        line = rollout.append("network", {})
    (damage,) = damages(rollout.path)
    assert (damage.kind, damage.length) == (DamageKind.NOT_JSON, 40)
    assert line.metadata["unchained"]["bytes"] == 41
    assert verify(rollout.path).intact
