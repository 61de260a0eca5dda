"""@pip, against a pip and an index that the test plays."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from doorward.allowlists.decision import Effect
from doorward.allowlists.host import parse_host
from doorward.allowlists.preset_pip import default_index, expand, read_settings
from doorward.allowlists.presets import Page, PresetUnavailable
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

# as optparse wraps it; the URL is the test's
HELP = """\
Package Index Options:
  -i, --index-url <url>       Base URL of the Python Package Index (default
                              https://builtin.test/simple). This should point
                              to a repository compliant with PEP 503 (the simple
                              repository API).
  --extra-index-url <url>     Extra URLs of package indexes to use in addition
                              to --index-url. (default nothing)
"""
TRIED = """\
For variant 'global', will try loading '/etc/pip.conf'
For variant 'user', will try loading '/home/u/.config/pip/pip.conf'
For variant 'site', will try loading '/home/u/it's/pip.conf'
"""
HTML = "text/html"


def links(*urls: str) -> tuple[str, bytes]:
    return HTML, "".join(f'<a href="{url}">x</a>' for url in urls).encode()


class Machine:
    """pip's output, and pages by URL: a body, or the URL it redirects to."""

    def __init__(
        self,
        config: str,
        pages: Mapping[str, tuple[str, bytes] | str],
        *,
        programs: Sequence[str] = ("pip",),
        help_text: str = HELP,
    ) -> None:
        self.config = config
        self.pages = pages
        self.programs = programs
        self.help_text = help_text
        self.asked: list[str] = []
        self.fetched: dict[str, tuple[str | None, bool]] = {}

    def run(self, argv: Sequence[str]) -> str | None:
        program = " ".join(argv)
        self.asked.append(program)
        if not any(program.startswith(f"{each} ") for each in self.programs):
            return None
        return self.help_text if program.endswith("--help") else TRIED + self.config

    def read(self, path: str) -> str | None:
        return None

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        self.fetched[url] = (ca_file, verify)
        via = []
        while isinstance(found := self.pages.get(url), str):
            via.append(url)
            url = found
        if found is None:
            raise OSError(f"404 for\n {url}")
        return Page(url, *found, tuple(via))


def entries(machine: Machine) -> list[str]:
    return [host.entry for host in expand(machine).hosts]


def test_without_settings_the_help_names_the_index() -> None:
    machine = Machine("", {"https://builtin.test/simple/pip/": links("https://files.test/pip-1.whl")})
    expansion = expand(machine)
    assert [host.entry for host in expansion.hosts] == ["builtin.test:443", "files.test:443"]
    assert [host.configured for host in expansion.hosts] == [True, False]
    assert "built-in" in expansion.hosts[0].why and "builtin.test" in expansion.hosts[1].why
    assert expansion.notices == ()
    assert machine.asked == ["pip config list -v", "pip install --help"]


@pytest.mark.parametrize(
    ("wrapped", "url"),
    [
        (HELP, "https://builtin.test/simple"),
        (HELP.replace("builtin.test", "built-\n                              in.test"), "https://built-in.test/simple"),
        (
            "--index-url <url>\n Base URL\n (default https://bui\n ltin.test/simple). This",
            "https://builtin.test/simple",
        ),
        ("--index-url <url>  Base URL.\n  --extra-index-url <url> (default https://no.test)", None),
        ("", None),
    ],
)
def test_the_help_is_wrapped_anywhere(wrapped: str, url: str | None) -> None:
    assert default_index(wrapped) == url


def test_settings_and_files_as_pip_prints_them() -> None:
    settings, files = read_settings(
        TRIED + "global.index-url='https://a.test/x=y'\n:env:.timeout='5'\nnoise\ninstall.no-index='1'\n"
    )
    assert settings == {
        ("global", "index-url"): "https://a.test/x=y",
        (":env:", "timeout"): "5",
        ("install", "no-index"): "1",
    }
    assert files == ("/etc/pip.conf", "/home/u/.config/pip/pip.conf", "/home/u/it's/pip.conf")


def test_what_the_expansion_depends_on() -> None:
    machine = Machine("", {"https://builtin.test/simple/pip/": links("a-1.whl")})
    inputs = expand(machine).fingerprint_inputs
    assert inputs.programs == ("pip",) and "/etc/pip.conf" in inputs.files and "PIP_*" in inputs.variables


def test_a_mirror_replaces_the_built_in_index() -> None:
    machine = Machine(
        "global.index-url='https://mirror.corp:8443/simple/'\n",
        {"https://mirror.corp:8443/simple/pip/": links("../../files/pip-1.whl")},
    )
    assert entries(machine) == ["mirror.corp:8443"]
    assert machine.asked == ["pip config list -v"]


def test_the_environment_goes_before_the_section_before_global() -> None:
    pages = {f"https://{name}.test/pip/": links("a-1.whl") for name in ("env", "section", "all", "builtin")}
    config = "global.index-url='https://all.test'\ninstall.index-url='https://section.test'\n"
    assert entries(Machine(config, pages)) == ["section.test:443", "all.test:443"]
    assert entries(Machine(config + ":env:.index-url='https://env.test'\n", pages)) == ["env.test:443"]
    assert entries(Machine(config + ":env:.index-url=''\n", pages)) == ["section.test:443", "all.test:443"]


def test_a_setting_of_one_command_leaves_the_others_on_the_built_in_index() -> None:
    pages = {"https://a.test/pip/": links("a-1.whl"), "https://builtin.test/simple/pip/": links("a-1.whl")}
    machine = Machine("install.index-url='https://a.test'\n", pages)
    assert entries(machine) == ["a.test:443", "builtin.test:443"]
    assert machine.asked[-1] == "pip download --help"


def test_extra_indexes_and_pages_of_links() -> None:
    config = (
        ":env:.extra-index-url='https://one.test/simple file:///opt/simple https://two.test:444/'\n"
        "global.find-links='https://wheels.test/all.html\\n/opt/wheels'\n"
    )
    pages = {
        "https://builtin.test/simple/pip/": links("https://files.test/pip-1.whl"),
        "https://one.test/simple/setuptools/": links("https://files.test/s-1.whl"),
        "https://two.test:444/pip/": links("http://plain.test/pip-1.tar.gz"),
        "https://wheels.test/all.html": links("https://cdn.test/a-1.whl"),
    }
    assert entries(Machine(config, pages)) == [
        "builtin.test:443",
        "files.test:443",
        "one.test:443",
        "two.test:444",
        "plain.test:80",
        "wheels.test:443",
        "cdn.test:443",
    ]


def test_an_index_without_the_usual_projects_is_read_at_its_root() -> None:
    config = "global.index-url='https://small.test/simple'\n"
    pages = {
        "https://small.test/simple/": (HTML, b'<a href="ours/">ours</a>'),
        "https://small.test/simple/ours/": links("https://files.test/ours-1.whl"),
    }
    assert entries(Machine(config, pages)) == ["small.test:443", "files.test:443"]


def test_redirects_count() -> None:
    pages: dict[str, tuple[str, bytes] | str] = {
        "https://builtin.test/simple/pip/": "https://hop.test/pip/",
        "https://hop.test/pip/": "http://end.test:8080/pip/",
        "http://end.test:8080/pip/": links("pip-1.whl"),
    }
    expansion = expand(Machine("", pages))
    assert [host.entry for host in expansion.hosts] == ["builtin.test:443", "hop.test:443", "end.test:8080"]
    assert "redirected" in expansion.hosts[1].why


def test_json_pages() -> None:
    body = b'{"files": [{"url": "https://files.test/pip-1.whl"}]}'
    page = ("application/vnd.pypi.simple.v1+json", body)
    assert entries(Machine("", {"https://builtin.test/simple/pip/": page})) == ["builtin.test:443", "files.test:443"]


def test_plain_http_is_left_out_unless_trusted_or_loopback() -> None:
    pages = {
        "http://plain.test/pip/": links("a-1.whl"),
        "http://127.0.0.1:3141/pip/": links("a-1.whl"),
        "http://localhost:3142/pip/": links("a-1.whl"),
    }
    plain = expand(Machine("global.index-url='http://plain.test'\n", pages))
    assert plain.hosts == () and "trusted-host" in plain.notices[0]
    for trusted in ("plain.test", "plain.test:80", "other.test PLAIN.test"):
        config = f"global.index-url='http://plain.test'\nglobal.trusted-host='{trusted}'\n"
        assert entries(Machine(config, pages)) == ["plain.test:80"]
    assert (
        expand(Machine("global.index-url='http://plain.test'\nglobal.trusted-host='plain.test:81'\n", pages)).hosts
        == ()
    )
    assert entries(Machine("global.index-url='http://127.0.0.1:3141'\n", pages)) == ["127.0.0.1:3141"]
    assert entries(Machine("global.index-url='http://localhost:3142'\n", pages)) == ["localhost:3142"]


def test_certificates_as_pip_takes_them() -> None:
    config = "global.index-url='https://a.test'\nglobal.cert='/etc/my ca.pem'\nglobal.trusted-host='b.test'\n:env:.extra-index-url='https://b.test'\n"
    machine = Machine(config, {"https://a.test/pip/": links("a-1.whl"), "https://b.test/pip/": links("a-1.whl")})
    expand(machine)
    assert machine.fetched["https://a.test/pip/"] == ("/etc/my ca.pem", True)
    assert machine.fetched["https://b.test/pip/"] == ("/etc/my ca.pem", False)


def test_everything_local_opens_nothing() -> None:
    expansion = expand(Machine("global.index-url='file:///opt/simple'\nglobal.extra-index-url='/opt/more'\n", {}))
    assert expansion.hosts == () and "local" in expansion.notices[0]
    expansion = expand(Machine("global.no-index='yes'\nglobal.find-links='/opt/wheels'\n", {}))
    assert expansion.hosts == () and expansion.fingerprint_inputs.files


def test_loopback_and_metadata_that_a_page_names_stay_shut() -> None:
    """Only the tool's own configuration may name loopback; nothing may name metadata."""
    page = links(
        "http://127.0.0.1:9/a-1.whl",
        "http://localhost/a-1.whl",
        "http://[::ffff:169.254.169.254]/a-1.whl",
        "https://10.0.0.7/a-1.whl",
    )
    expansion = expand(Machine("", {"https://builtin.test/simple/pip/": page}))
    assert [host.entry for host in expansion.hosts] == ["builtin.test:443", "10.0.0.7:443"]
    assert len(expansion.notices) == 3
    assert all("left out" in notice for notice in expansion.notices)


def test_credentials_reach_the_index_and_nothing_else() -> None:
    config = "global.index-url='https://user:secret@mirror.corp/simple'\n"
    config += ":env:.extra-index-url='https://me:secret@gone.corp/simple http://me:secret@plain.corp/'\n"
    machine = Machine(config, {"https://user:secret@mirror.corp/simple/pip/": links("a-1.whl")})
    expansion = expand(machine)
    assert "https://user:secret@mirror.corp/simple/pip/" in machine.fetched
    assert "secret" not in repr(expansion) and len(expansion.notices) == 2


def test_an_extra_index_that_cannot_be_read_is_opened_alone_and_said() -> None:
    pages = {"https://builtin.test/simple/pip/": links("https://files.test/pip-1.whl")}
    expansion = expand(Machine(":env:.extra-index-url='https://gone.test/simple'\n", pages))
    assert [host.entry for host in expansion.hosts] == ["builtin.test:443", "files.test:443", "gone.test:443"]
    assert "gone.test" in expansion.notices[0] and "404 for " in expansion.notices[0]


def test_no_index_that_can_be_read_is_unavailable() -> None:
    with pytest.raises(PresetUnavailable) as error:
        expand(Machine("", {}))
    assert "builtin.test" in error.value.reason and "--allow" in error.value.remedy


def test_a_help_without_a_default_is_unavailable() -> None:
    with pytest.raises(PresetUnavailable, match="index-url"):
        expand(Machine("", {}, help_text="usage: pip"))


def test_pip_under_another_name() -> None:
    pages = {"https://builtin.test/simple/pip/": links("a-1.whl")}
    for program in ("pip3", "python3 -m pip"):
        expansion = expand(Machine("", pages, programs=[program]))
        assert expansion.fingerprint_inputs.programs == (program.split()[0],)


def test_a_proxy_of_pips_own_is_said() -> None:
    config = "global.proxy='http://user:secret@proxy.corp:3128'\n"
    expansion = expand(Machine(config, {"https://builtin.test/simple/pip/": links("a-1.whl")}))
    assert "proxy" in expansion.notices[0] and "secret" not in expansion.notices[0]


@pytest.mark.parametrize(
    "url", ["https://[bad", "https://a b.test/", "https://127.1/simple", "https://host:99999/", "https:///x"]
)
def test_an_index_with_no_usable_host_is_said(url: str) -> None:
    expansion = expand(Machine(f"global.index-url='{url}'\n", {}))
    assert expansion.hosts == () and expansion.notices


def test_the_expansion_becomes_rules_that_allow_it(rule: Callable[..., object]) -> None:
    machine = Machine("", {"https://builtin.test/simple/pip/": links("https://files.test:8443/pip-1.whl")})
    allow = [parse_rule(host.entry, "allow", Origin("preset", "@pip")) for host in expand(machine).hosts]
    rules = RuleSet.build(allow, [], pins={"files.test": ["10.0.0.7"]})
    decision = rules.decide(parse_host("files.test"), 8443)
    assert decision.effect is Effect.ALLOW and "@pip" in decision.message
    assert rules.judge(decision, rules.pin(parse_host("files.test"))).usable
    assert rules.decide(parse_host("files.test"), 443).reason == "port_not_allowed"
