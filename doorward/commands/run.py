"""`doorward run`: the main job, and the start-up path. What is imported here is paid for at every run."""

from __future__ import annotations

import os
import sys

from doorward.proxy_process import ProxyProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.launcher.protocols import Backend
    from doorward.observation import Observation
    from doorward.options import Parsed

_USAGE = "doorward run [options] [--] CMD [ARG…]"
_SUMMARY = "Run a command behind the doors: confined, reaching only what is allowed, every refusal recorded."
_EXAMPLES = (
    "doorward run --allow @pip -- pip install six",
    "doorward run -s read-only -- pytest -q",
)


def main(args: list[str]) -> int:
    """Run the command in `args` behind the doors. Returns the exit status of DESIGN §6."""
    if sys.platform not in ("linux", "darwin"):
        from doorward.commands.elsewhere import nothing_here

        return nothing_here(sys.platform)
    from doorward.commands.dispatch import guarded

    if not args or args[0] in ("-h", "--help"):
        return guarded(lambda words: _supervise_or_help(words, None, None), args)
    # The network door and, in `_run`, the sandbox's shim are forked before anything else is imported, so that all three
    # import at the same time. What the two forks take comes before the first: they follow each other at once, since
    # after a fork each page that is written to is copied, and so that is paid once.
    import doorward.door_ahead

    if sys.platform == "linux":
        import doorward.launcher.seed  # noqa: F401
    proxy = ProxyProcess()
    try:
        return guarded(lambda words: _run(words, proxy), args)
    finally:
        proxy.close()


def _run(args: list[str], proxy: ProxyProcess) -> int:
    from doorward.door_ahead import door_ahead

    door = door_ahead()
    try:
        return _supervise_or_help(args, proxy, door)
    finally:
        door.close()


def _supervise_or_help(args: list[str], proxy: ProxyProcess | None, door: Backend | None) -> int:
    from doorward.commands.run_options import RUN_OPTIONS
    from doorward.options import HelpWanted, help_text, parse

    try:
        parsed = parse("run", RUN_OPTIONS, args, stop_at_word=True)
    except HelpWanted:
        print(help_text(_USAGE, _SUMMARY, RUN_OPTIONS, _EXAMPLES), end="")
        return 0
    return _supervise(parsed, proxy, door)


def _supervise(parsed: Parsed, proxy: ProxyProcess | None, door: Backend | None) -> int:
    from doorward import exit_status
    from doorward.commands.run_options import command_of, opening_of, seconds
    from doorward.opening import open_supervisor
    from doorward.streams import captured, passed_through, untouched
    from doorward.supervisor import Request
    from doorward.working_folder import working_folder

    if parsed.has("agent"):
        from doorward.agents.arrival import arrived_here  # only for what an agent runs

        arrived_here(parsed.last("agent"), os.environ)
    as_json = parsed.has("json")
    options = opening_of("run", parsed)
    argv, _ = command_of("run", parsed)
    timeout = seconds("run", "timeout", parsed.last("timeout")) if parsed.has("timeout") else None
    assert door is not None  # there is a command, so there was a word
    supervisor = open_supervisor(options, proxy, door)
    try:
        open_streams = (
            captured if as_json else (lambda _: untouched()) if parsed.has("no-record-output") else passed_through
        )
        # the workspace of an agent's session is where it began; its shell may be elsewhere
        folder = working_folder(None) if parsed.has("agent") else supervisor.workspace
        observation = supervisor.run(Request(argv, folder, os.environ, open_streams, timeout, last=True))
        _report(observation, supervisor.notices, as_json)  # while the processes go
    finally:
        supervisor.close()
    if parsed.has("fail-on-deny") and observation.refusals and observation.exit_code == 0:
        return exit_status.REFUSED_SEEN
    return observation.exit_code


def _report(observation: Observation, notices: list[str], as_json: bool) -> None:
    """After the command ended: doorward's own lines on stderr, and the document on stdout if asked for."""
    if notices or observation.notes or observation.refusals:
        from doorward.summary import printable, summarize

        # a program reads hints in the document
        hints = {each["message"] for each in observation.hints} if as_json else ()
        told = (note for note in observation.notes if note not in hints)
        lines = [printable(f"doorward: {notice}") for notice in (*notices, *told)]
        lines += summarize(observation.refusals)
        _write(2, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    if as_json:
        import json

        _write(1, json.dumps(observation.to_json()).encode("ascii") + b"\n")


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        pass  # nobody is listening; the rollout has it all
