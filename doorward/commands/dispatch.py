"""Everything but `run`: find the command's module, turn errors into one sentence and an exit status."""

from __future__ import annotations

import sys

from doorward import exit_status
from doorward.errors import EngineError, Refused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def dispatch(args: list[str], commands: Mapping[str, str], usage: str) -> int:
    """Run `args[0]`'s module. Unknown commands are named with their nearest spelling (exit status 2)."""
    if not args or args[0] in ("-h", "--help", "help"):
        width = max(map(len, commands)) + 2
        sys.stdout.write(usage + "".join(f"  {name:<{width}}{text}\n" for name, text in commands.items()))
        sys.stdout.write("\n`doorward COMMAND --help` tells the rest.\n")
        return 0 if args else exit_status.USAGE
    if args[0] in ("-V", "--version", "version"):
        from doorward.version import VERSION

        sys.stdout.write(f"doorward {VERSION}\n")
        return 0
    name = args[0]
    if name not in commands:
        import difflib

        near = difflib.get_close_matches(name, list(commands), n=1)
        hint = f"; did you mean `doorward {near[0]}`?" if near else "; `doorward --help` lists the commands"
        if name.startswith("-") or not near:
            hint += " To run a command: doorward run -- CMD"
        sys.stderr.write(f"doorward: there is no command {name!r}{hint}\n")
        return exit_status.USAGE
    return guarded(_module_main(name), args[1:])


def _module_main(name: str) -> Callable[[list[str]], int]:
    module = __import__(f"doorward.commands.{name}", fromlist=["main"])
    entry: Callable[[list[str]], int] = module.main
    return entry


def guarded(entry: Callable[[list[str]], int], args: list[str]) -> int:
    """Call `entry`; what it raises becomes a sentence on stderr and the exit status of DESIGN §6."""
    try:
        return entry(args)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return exit_status.USAGE
    except EngineError as error:
        sys.stderr.write(f"doorward: {error}\n")
        return exit_status.ENGINE_FAILED
    except Refused as error:
        sys.stderr.write(f"{error}\n")
        return exit_status.REFUSED_HERE
    except BrokenPipeError:
        # the reader of our stdout left (`| head`): no message, and none at interpreter exit either
        import os

        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        return 141
    except KeyboardInterrupt:
        return 130
