"""Seatbelt profiles: well formed, each rule of a policy in them, and right about reads, writes and connections.

No Mac is asked. A reader of S-expressions and a last-match evaluator answer in its place; that every operation and
filter is one that Seatbelt has is checked by running the text as Scheme (`tinyscheme`, install.sh --dev).
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from doorward.launcher.interface import Mode, UnenforceableRule
from doorward.launcher.mounts import Entry, Kind, Origin
from doorward.launcher.seatbelt_profile import Pattern, View, make_profile

GOLDEN = Path(__file__).parent / "golden"
WORK = "/Users/ada/project"
ROOT = Entry("/", Kind.READ)

# --- a reader and an evaluator ----------------------------------------------------------------------------------

TOKEN = re.compile(r'\s+|;[^\n]*|#?"(?:\\.|[^"\\])*"|[()]|[^\s()";]+', re.DOTALL)


def read(text):
    """The S-expressions in `text`; a string is ("string", value)."""
    stack, at = [[]], 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, f"unreadable at {text[at : at + 40]!r}"
        at, token = found.end(), found[0]
        if token.isspace() or token.startswith(";"):
            continue
        if token == "(":
            stack.append([])
        elif token == ")":
            assert len(stack) > 1, "closes what is not open"
            closed = stack.pop()
            stack[-1].append(closed)
        elif token.startswith("#"):
            stack[-1].append(("string", token[2:-1]))
        elif token.startswith('"'):
            stack[-1].append(("string", re.sub(r"\\(.)", r"\1", token[1:-1])))
        else:
            stack[-1].append(token)
    assert len(stack) == 1, "something is not closed"
    return stack[0]


class Evaluator:
    """Answers what a profile allows, by the last rule that matches."""

    def __init__(self, profile):
        self.parameters = dict(profile.parameters)
        assert len(self.parameters) == len(profile.parameters)
        self.rules = [form for form in read(profile.text) if form[0] in ("allow", "deny")]
        self.used = set()

    def allows(self, operation, **about):
        answer = False
        for effect, *rest in self.rules:
            names = [word for word in rest if isinstance(word, str)]
            filters = [word for word in rest if isinstance(word, list)]
            if any(self.covers(name, operation) for name in names) and (
                not filters or any(self.matches(each, about) for each in filters)
            ):
                answer = effect == "allow"
        return answer

    @staticmethod
    def covers(name, operation):
        return name in ("default", operation) or (name.endswith("*") and operation.startswith(name[:-1]))

    def value(self, form):
        if form[0] == "param":
            self.used.add(form[1][1])
            return self.parameters[form[1][1]]
        assert form[0] == "string"
        return form[1]

    def matches(self, form, about):
        kind, *rest = form
        path = about.get("path")
        if kind == "subpath":
            value = self.value(rest[0])
            return path is not None and (path == value or path.startswith(value + "/"))
        if kind == "literal":
            return path == self.value(rest[0])
        if kind == "regex":
            return path is not None and re.search(self.value(rest[0]), path) is not None
        if kind in ("remote", "local"):
            if rest[0] == "unix-socket":
                return len(rest) == 1 or self.matches(rest[1], about)
            host, port = rest[1][1].rsplit(":", 1)
            return (
                about.get("host") is not None
                # what the kernel calls localhost; a mapped address is not among it
                and (host == "*" or about["host"] in ("127.0.0.1", "::1"))
                and port in ("*", str(about["port"]))
            )
        if kind == "require-all":
            return all(self.matches(each, about) for each in rest)
        if kind in ("global-name", "sysctl-name"):
            return about.get("name") == rest[0][1]
        return False


def view(*entries, mode=Mode.WORKSPACE_WRITE, network="proxied", **more):
    workspace = Entry(WORK, Kind.WRITE if mode is Mode.WORKSPACE_WRITE else Kind.READ, Origin.EXACT)
    values = {
        "entries": (ROOT, workspace, *entries), "patterns": (), "home": "/Users/ada/.doorward",
        "temporary": "/private/var/folders/xx/yy/T/doorward-1", "port": 49152 if network == "proxied" else None,
    }  # fmt: skip
    return View(mode, network, **(values | more))


def evaluate(*entries, **more):
    return Evaluator(make_profile(view(*entries, **more)))


# --- golden texts -----------------------------------------------------------------------------------------------

PROTECTED = (
    Entry(f"{WORK}/.git/hooks", Kind.READ, Origin.GENERAL),
    Entry(f"{WORK}/.bashrc", Kind.READ, Origin.GENERAL),
)
CASES = {
    "workspace-write": view(*PROTECTED),
    "read-only": view(mode=Mode.READ_ONLY, network="off", trust_service=False),
    "hidden": view(
        Entry("/Users/ada/.ssh", Kind.HIDDEN, Origin.EXACT),
        Entry(f"{WORK}/secret", Kind.HIDDEN, Origin.EXACT),
        Entry(f"{WORK}/secret/public", Kind.READ, Origin.EXACT),
        patterns=(Pattern(Kind.HIDDEN, WORK, "**/*.key"), Pattern(Kind.READ, WORK, "src/*.lock")),
        sockets=("/private/var/run/docker.sock",),
        local_binding=True,
    ),
    "network-full": view(network="full"),
    "danger-full-access": view(mode=Mode.DANGER_FULL_ACCESS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_profile_is_the_one_that_was_looked_at(name):
    """DOORWARD_GOLDEN=write writes them anew; then read what changed."""
    profile = make_profile(CASES[name])
    text = profile.text + "".join(f"; -D {key}={value}\n" for key, value in profile.parameters)
    path = GOLDEN / f"{name}.sb"
    if os.environ.get("DOORWARD_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_the_profile_is_well_formed_and_uses_each_parameter(name):
    profile = make_profile(CASES[name])
    forms = read(profile.text)
    assert forms[0] == ["version", "1"]
    assert {form[0] for form in forms[1:]} <= {"allow", "deny"}
    for path in {form for rule in forms for form in _parameters(rule)}:
        assert path in dict(profile.parameters)
    assert {name for rule in forms for name in _parameters(rule)} == dict(profile.parameters).keys()


def _parameters(form):
    if isinstance(form, list):
        if form and form[0] == "param":
            yield form[1][1]
        for each in form:
            yield from _parameters(each)


# Operations and filters of Seatbelt (the profiles in /System/Library/Sandbox/Profiles use them all).
_OPERATIONS = """default file-read* file-read-data file-write* file-write-data file-write-unlink file-write-setugid
file-link file-ioctl file-map-executable process-exec process-fork process-info* signal pseudo-tty ipc-posix-sem
ipc-posix-shm* ipc-posix-shm-read* sysctl-read system-socket iokit-open mach-lookup network-outbound network-inbound
network-bind"""
_FILTERS = """subpath literal regex require-all require-any require-not remote local target extension global-name
sysctl-name sysctl-name-regex ipc-posix-name ipc-posix-name-regex iokit-registry-entry-class socket-domain"""
_WORDS = "ip unix-socket same-sandbox AF_UNIX AF_ROUTE"
PRELUDE = (
    "".join(f"(define {name} '{name})\n" for name in f"{_OPERATIONS} {_WORDS}".split())
    + "".join(f"(define ({name} . rest) (cons '{name} rest))\n" for name in _FILTERS.split())
    + "(define rules 0)\n(define (version n) n)\n"
    + '(define (param key) (string-append "value of " key))\n'
    + "(define (allow . rest) (set! rules (+ rules 1)))\n(define deny allow)\n"
)


@pytest.mark.parametrize("name", CASES)
def test_as_scheme_it_names_only_operations_there_are(name, tmp_path):
    tinyscheme = shutil.which("tinyscheme")
    if tinyscheme is None:
        if os.environ.get("CI") == "true":
            pytest.fail("tinyscheme is missing: ./install.sh --dev installs it")
        pytest.skip("tinyscheme is not installed (./install.sh --dev)")
    profile = make_profile(CASES[name])
    # its reader has no #"…" strings; the same text as an ordinary string
    text = re.sub(r'#"((?:\\.|[^"\\])*)"', lambda found: '"' + found[1].replace("\\", "\\\\") + '"', profile.text)
    program = tmp_path / "profile.scm"
    program.write_text(f'{PRELUDE}{text}\n(display "rules ") (display rules) (newline)\n')
    done = subprocess.run([tinyscheme, program], capture_output=True, text=True, timeout=20, check=False, input="")
    # it exits 0 on an error, and loads nothing of a text that is not balanced: so what counts is what it prints
    rules = sum(form[0] in ("allow", "deny") for form in read(profile.text))
    assert f"rules {rules}" in done.stdout.splitlines(), done.stdout + done.stderr


def test_the_scheme_check_itself_finds_a_misspelt_operation(tmp_path):
    if shutil.which("tinyscheme") is None:
        pytest.skip("tinyscheme is not installed (./install.sh --dev)")
    program = tmp_path / "profile.scm"
    program.write_text(f'{PRELUDE}(allow file-raed*)\n(display "rules ") (display rules) (newline)\n')
    done = subprocess.run(["tinyscheme", program], capture_output=True, text=True, timeout=20, check=False, input="")
    assert "rules 1" not in done.stdout


# --- files ------------------------------------------------------------------------------------------------------


def test_writes_stay_in_the_workspace():
    seen = evaluate()
    for path, allowed in [
        (f"{WORK}/a", True), (WORK, True), ("/private/var/folders/xx/yy/T/doorward-1/x", True), ("/dev/null", True),
        ("/Users/ada/a", False), (f"{WORK}2/a", False), ("/private/tmp/a", False), ("/Users/ada/.doorward/x", False),
        ("/private/etc/hosts", False), ("/dev/disk0", False),
    ]:  # fmt: skip
        assert seen.allows("file-write-data", path=path) is allowed, path
    assert seen.allows("file-read-data", path="/private/etc/hosts")


def test_read_only_writes_nothing_but_its_own_temporary_folder():
    seen = evaluate(mode=Mode.READ_ONLY, network="off")
    assert not seen.allows("file-write-create", path=f"{WORK}/a")
    assert seen.allows("file-write-create", path="/private/var/folders/xx/yy/T/doorward-1/a")


def test_the_most_specific_rule_wins_whatever_the_order():
    entries = (
        Entry(f"{WORK}/a", Kind.HIDDEN, Origin.EXACT),
        Entry(f"{WORK}/a/b", Kind.WRITE, Origin.EXACT),
        Entry(f"{WORK}/a/b/c", Kind.READ, Origin.EXACT),
    )
    for order in (entries, entries[::-1]):
        seen = evaluate(*order)
        assert not seen.allows("file-read-data", path=f"{WORK}/a/x")
        assert seen.allows("file-write-data", path=f"{WORK}/a/b/x")
        assert seen.allows("file-read-data", path=f"{WORK}/a/b/c/x")
        assert not seen.allows("file-write-data", path=f"{WORK}/a/b/c/x")


@pytest.mark.parametrize("name", [".bashrc", ".BASHRC", ".Bashrc"])
def test_a_protected_name_stays_in_every_case_of_its_letters(name):
    """On a Mac's disk `.BASHRC` is found as `.bashrc`."""
    seen = evaluate(*PROTECTED)
    assert not seen.allows("file-write-create", path=f"{WORK}/{name}")
    assert seen.allows("file-write-create", path=f"{WORK}/{name}2")
    assert seen.allows("file-read-data", path=f"{WORK}/{name}")


def test_what_is_refused_cannot_be_renamed_away_with_its_parent():
    seen = evaluate(
        *PROTECTED,
        patterns=(Pattern(Kind.HIDDEN, WORK, "conf/*/x.key"), Pattern(Kind.HIDDEN, WORK, "**/vault/*.pem")),
    )
    for path in (WORK, f"{WORK}/.git", f"{WORK}/conf", f"{WORK}/conf/any", f"{WORK}/deep/vault", f"{WORK}/CONF"):
        assert not seen.allows("file-write-unlink", path=path), path
    for path in (f"{WORK}/src", f"{WORK}/.git/index.lock", f"{WORK}/conf/any/y"):
        assert seen.allows("file-write-unlink", path=path), path


def test_a_hidden_path_cannot_be_linked_or_executed_either():
    seen = evaluate(Entry(f"{WORK}/secret", Kind.HIDDEN, Origin.EXACT))
    for operation in ("file-read-data", "file-read-metadata", "file-write-unlink", "file-link", "process-exec"):
        assert not seen.allows(operation, path=f"{WORK}/secret/x"), operation
        assert seen.allows(operation, path=f"{WORK}/open/x"), operation
    assert not seen.allows("file-link", path="/Users/ada/.zshrc")


@pytest.mark.parametrize(
    ("pattern", "hidden", "shown"),
    [
        ("**/*.key", ["a.key", "d/e/A.KEY", "a.key/below"], ["a.keys", "key"]),
        ("src/*.lock", ["src/a.lock"], ["src/d/a.lock", "a.lock"]),
        ("a?[0-2].pem", ["ab1.pem"], ["ab3.pem", "a/1.pem"]),
        ("x[!ab]", ["xc"], ["xa", "xb", "x/"]),
        ("d/**", ["d/x", "d/x/y"], ["d", "e/x"]),
        ("(a|b)+.txt*", ["(a|b)+.txt2"], ["a.txt", "ab.txt"]),
        ("line\nbreak*", ["line\nbreak1"], ["linebreak"]),
        ("Ü*", ["ü1", "Ü1"], ["U1"]),
    ],
)
def test_patterns(pattern, hidden, shown):
    seen = evaluate(patterns=(Pattern(Kind.HIDDEN, WORK, pattern),))
    for name in hidden:
        assert not seen.allows("file-read-data", path=f"{WORK}/{name}"), name
    for name in shown:
        assert seen.allows("file-read-data", path=f"{WORK}/{name}"), name


def test_an_exact_rule_below_a_match_is_deeper_and_a_match_below_an_exact_rule_too():
    seen = evaluate(
        Entry(f"{WORK}/a.key/public", Kind.READ, Origin.EXACT),
        Entry(f"{WORK}/open", Kind.WRITE, Origin.EXACT),
        patterns=(Pattern(Kind.HIDDEN, WORK, "**/*.key"), Pattern(Kind.HIDDEN, WORK, "**/*.pem")),
    )
    assert seen.allows("file-read-data", path=f"{WORK}/a.key/public/x")
    assert not seen.allows("file-read-data", path=f"{WORK}/a.key/other")
    assert not seen.allows("file-read-data", path=f"{WORK}/open/b.key")
    assert not seen.allows("file-read-data", path=f"{WORK}/a.key/public/c.pem")


def test_a_writable_pattern_keeps_protected_names():
    seen = evaluate(patterns=(Pattern(Kind.WRITE, "/Users/ada", "out-*"),), own=(".bashrc",))
    assert seen.allows("file-write-data", path="/Users/ada/out-1/x")
    assert not seen.allows("file-write-data", path="/Users/ada/out-1/.bashrc")
    assert not seen.allows("file-write-data", path="/Users/ada/OUT-1/x")


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.READ, Kind.HIDDEN])
@pytest.mark.parametrize("top", ["/tmp/x", "/var/y", "/etc/z", "/private/tmp/x", "/private/var/y", "/private/etc/z"])
def test_both_spellings_of_private(top, kind):
    """P-PL-02."""
    seen = evaluate(Entry(top, kind, Origin.EXACT))
    plain = top.removeprefix("/private")
    for path in (f"{plain}/file", f"/private{plain}/file"):
        assert seen.allows("file-write-data", path=path) is (kind is Kind.WRITE)
        assert seen.allows("file-read-data", path=path) is (kind is not Kind.HIDDEN)


def test_both_unicode_forms():
    seen = evaluate(Entry(f"{WORK}/caf\u00e9", Kind.HIDDEN, Origin.EXACT))
    for name in ("caf\u00e9", "cafe\u0301", "CAF\u00c9"):
        assert not seen.allows("file-read-data", path=f"{WORK}/{name}/x"), name


ODD = ['a"b', "a)(allow default", "a\\b", "a;b", "a\nb", "a(b", "#a", "a\udcffb", "[a]", "a b", "$a^", "x" * 200]


@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.READ, Kind.HIDDEN])
@pytest.mark.parametrize("name", ODD)
def test_a_name_cannot_break_out_of_the_profile(name, kind):
    """P-PL-03: the same number of rules as for a plain name, and that one path is meant."""
    seen = evaluate(Entry(f"/Users/ada/{name}", kind, Origin.EXACT))
    plain = evaluate(Entry("/Users/ada/plain", kind, Origin.EXACT))
    assert len(seen.rules) == len(plain.rules)
    assert seen.allows("file-write-data", path=f"/Users/ada/{name}/x") is (kind is Kind.WRITE)
    assert seen.allows("file-read-data", path=f"/Users/ada/{name}/x") is (kind is not Kind.HIDDEN)
    assert not seen.allows("file-write-data", path="/Users/ada/other")
    assert seen.allows("file-read-data", path="/Users/ada/other")


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_what_no_path_can_be_is_refused(name):
    """P-PL-03."""
    for more in ({"patterns": (Pattern(Kind.HIDDEN, WORK, f"{name}*"),)}, {}):
        entries = () if more else (Entry(f"{WORK}/{name}", Kind.HIDDEN, Origin.EXACT),)
        with pytest.raises(UnenforceableRule):
            make_profile(view(*entries, **more))


def test_more_than_a_program_can_be_given_is_refused():
    entries = [Entry(f"{WORK}/{'x' * 100}{number}", Kind.HIDDEN, Origin.EXACT) for number in range(2000)]
    with pytest.raises(UnenforceableRule, match="path rules"):
        make_profile(view(*entries))


def test_terminals_of_other_programs_are_out_of_reach():
    seen = evaluate(terminal="/dev/ttys003")
    assert not seen.allows("file-read-data", path="/dev/ttys001")
    assert not seen.allows("file-write-data", path="/dev/ttys001")
    assert not seen.allows("file-read-data", path="/dev/cu.usbserial")
    for operation in ("file-read-data", "file-write-data", "file-ioctl"):
        assert seen.allows(operation, path="/dev/ttys003")
        assert seen.allows(operation, path="/dev/tty") or operation == "file-write-data"
    assert not evaluate().allows("file-read-data", path="/dev/ttys003")


# --- network and services ---------------------------------------------------------------------------------------


def test_only_the_proxys_port_can_be_dialled():
    seen = evaluate()
    for host in ("127.0.0.1", "::1"):
        assert seen.allows("network-outbound", host=host, port=49152)
        assert not seen.allows("network-outbound", host=host, port=49153)
        assert not seen.allows("network-bind", host=host, port=8000)
    # why clients are given the name `localhost` and a listener on ::1 (P-PL-04)
    assert not seen.allows("network-outbound", host="::ffff:127.0.0.1", port=49152)
    assert not seen.allows("network-outbound", host="192.0.2.1", port=49152)


def test_network_off_and_full():
    assert not evaluate(network="off").allows("network-outbound", host="127.0.0.1", port=49152)
    full = evaluate(network="full")
    assert full.allows("network-outbound", host="192.0.2.1", port=443)
    assert full.allows("network-outbound", path="/private/var/run/mDNSResponder")
    assert not full.allows("network-outbound", path="/private/var/run/docker.sock")


def test_open_files_do_not_open_the_network():
    seen = evaluate(mode=Mode.DANGER_FULL_ACCESS)
    assert seen.allows("file-write-data", path="/Users/ada/x")
    assert seen.allows("network-outbound", host="::1", port=49152)
    assert not seen.allows("network-outbound", host="192.0.2.1", port=443)
    assert not seen.allows("network-outbound", path="/private/var/run/mDNSResponder")


def test_servers_on_localhost_by_option():
    assert not evaluate().allows("network-inbound", host="127.0.0.1", port=8000)
    seen = evaluate(local_binding=True)
    assert seen.allows("network-bind", host="127.0.0.1", port=8000)
    assert seen.allows("network-outbound", host="::1", port=8000)
    assert not seen.allows("network-bind", host="0.0.0.0", port=8000)


def test_unix_sockets_of_the_host_by_name_only():
    seen = evaluate(sockets=("/private/var/run/docker.sock",))
    assert seen.allows("network-outbound", path="/private/var/run/docker.sock")
    assert seen.allows("network-outbound", path="/private/var/folders/xx/yy/T/doorward-1/mine")
    assert not seen.allows("network-outbound", path="/private/tmp/com.apple.launchd.x/Listeners")
    assert not seen.allows("network-bind", path=f"{WORK}/socket")


def test_the_trust_service_is_there_unless_switched_off():
    """P-PL-01: Go programs verify certificates through it alone."""
    assert evaluate().allows("mach-lookup", name="com.apple.trustd.agent")
    assert not evaluate(trust_service=False).allows("mach-lookup", name="com.apple.trustd.agent")


@pytest.mark.parametrize(
    "service", ["com.apple.coreservices.launchservicesd", "com.apple.SecurityServer", "com.apple.pasteboard.1",
                "com.apple.dnssd.service", "com.apple.securityd.xpc"],
)  # fmt: skip
def test_services_that_would_act_outside_are_not_there(service):
    assert not evaluate().allows("mach-lookup", name=service)
