"""What tools say of themselves, as they print it."""

import json
from collections.abc import Mapping, Sequence

import pytest

from doorward.allowlists.preset_configured import ASKING, Asked
from doorward.allowlists.presets import Page


class Machine:
    """Tools that print what the test says, and files that hold it; nothing else is there."""

    def __init__(self, says: Mapping[str, str] = {}, files: Mapping[str, str] = {}) -> None:
        self.says = says
        self.files = files

    def run(self, argv: Sequence[str]) -> str | None:
        return next((text for words, text in self.says.items() if " ".join(argv).startswith(words)), None)

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        raise OSError("nothing is fetched for these")


def urls(asked: Asked | None) -> list[str]:
    assert asked is not None
    return [url for url, _ in asked.urls]


def test_a_tool_that_is_not_here_says_nothing() -> None:
    silent = {name for name, ask in ASKING.items() if (asked := ask(Machine())) is None or not asked.urls}
    assert silent == set(ASKING)


def test_apt_names_each_site_once() -> None:
    said = ASKING["apt"](Machine({"apt-get indextargets": "http://mirror.test/debian\nhttp://mirror.test/debian\n"}))
    assert urls(said) == ["http://mirror.test/debian"] and said is not None and said.instead


def test_apk_reads_its_repositories() -> None:
    text = "# a comment with http://no.test/\nhttps://mirror.test/alpine/v3.20/main\n@edge https://edge.test/main\n/media/x\n"
    said = ASKING["apk"](Machine(files={"/etc/apk/repositories": text}))
    assert urls(said) == ["https://mirror.test/alpine/v3.20/main", "https://edge.test/main"]


@pytest.mark.parametrize(
    ("text", "expected", "instead"),
    [
        ('[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://m.test/i/"',
         ["sparse+https://m.test/i/"], True),
        ('[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "b"\n[source.b]\ngit = "https://b.test/i"',
         ["https://b.test/i"], True),
        ('[source.crates-io]\nreplace-with = "v"\n[source.v]\ndirectory = "/srv/vendor"', [], False),
        ('[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "crates-io"', [], False),
        ('[registries.corp]\nindex = "sparse+https://corp.test/"', ["sparse+https://corp.test/"], False),
        ("[registries]\ncorp = 3", [], False),
    ],
)  # fmt: skip
def test_cargo_follows_replacements(text: str, expected: list[str], instead: bool) -> None:
    said = ASKING["cargo"](Machine(files={"~/.cargo/config.toml": text}))
    assert urls(said) == expected and said is not None and said.instead == instead


def test_cargo_with_a_home_of_its_own_and_a_file_that_is_no_toml() -> None:
    machine = Machine({"printenv CARGO_HOME": "/srv/cargo\n"}, {"/srv/cargo/config.toml": "= no"})
    said = ASKING["cargo"](machine)
    assert said is not None and "cannot be read" in said.notices[0]


def test_go_gives_proxies_and_the_database() -> None:
    answer = json.dumps({"GOPROXY": "https://a.test,https://b.test|direct", "GOSUMDB": "sum.test+033de0ae+Ac4"})
    said = ASKING["go"](Machine({"go env": answer}))
    assert urls(said) == ["https://a.test", "https://b.test", "https://sum.test"]
    assert said is not None and "direct" in said.notices[0]
    off = ASKING["go"](Machine({"go env": json.dumps({"GOPROXY": "off", "GOSUMDB": "off"})}))
    assert urls(off) == []
    moved = ASKING["go"](Machine({"go env": json.dumps({"GOPROXY": "off", "GOSUMDB": "sum.test+1 https://s.test/x"})}))
    assert urls(moved) == ["https://s.test/x"]


def test_conda_tells_names_from_urls() -> None:
    settings = {"channel_alias": "https://alias.test", "default_channels": ["https://d.test/main"],
                "channels": ["conda-forge", "https://own.test/c"]}  # fmt: skip
    assert urls(ASKING["conda"](Machine({"conda config": json.dumps(settings)}))) == [
        "https://alias.test", "https://own.test/c"]  # fmt: skip
    settings["channels"] = ["defaults"]
    assert urls(ASKING["conda"](Machine({"conda config": json.dumps(settings)}))) == ["https://d.test/main"]


@pytest.mark.parametrize(("of", "instead"), [("*", True), ("central", True), ("*,!central", False), ("corp", False)])
def test_a_maven_mirror_stands_for_central_or_not(of: str, instead: bool) -> None:
    text = f"""<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors><mirror>
      <id>m</id><url>https://m.test/maven</url><mirrorOf>{of}</mirrorOf></mirror></mirrors></settings>"""
    said = ASKING["maven"](Machine(files={"~/.m2/settings.xml": text}))
    assert urls(said) == ["https://m.test/maven"] and said is not None and said.instead == instead


def test_maven_settings_that_are_no_xml() -> None:
    said = ASKING["maven"](Machine(files={"~/.m2/settings.xml": "<settings"}))
    assert said is not None and "cannot be read" in said.notices[0]


@pytest.mark.parametrize(
    ("name", "words", "text", "expected"),
    [
        ("rubygems", "gem sources", "*** CURRENT SOURCES ***\n\nhttps://gems.test/\n", ["https://gems.test/"]),
        ("nuget", "dotnet nuget", "E https://n.test/v3/index.json\nD https://off.test/\nE /local\n",
         ["https://n.test/v3/index.json"]),
        ("composer", "composer config", "[repositories.packagist.org.type] composer\n[repositories.packagist.org.url] https://p.test\n",
         ["https://p.test"]),
        ("dnf", "dnf repolist", "Repo-id       : base\nRepo-baseurl  : https://d.test/os/ (9 more)\nRepo-metalink : https://l.test/x\n",
         ["https://d.test/os/", "https://l.test/x"]),
        ("git", "git config", "url.https://g.test/.insteadof\ncredential.https://c.test:8443.helper\nhttp.proxy.x\n",
         ["https://g.test/", "https://c.test:8443"]),
        ("huggingface", "printenv HF_ENDPOINT", "https://hf.test\n", ["https://hf.test"]),
        ("playwright", "printenv PLAYWRIGHT_DOWNLOAD_HOST", "https://pw.test\n", ["https://pw.test"]),
    ],
)  # fmt: skip
def test_what_a_tool_prints(name: str, words: str, text: str, expected: list[str]) -> None:
    assert urls(ASKING[name](Machine({words: text}))) == expected


def test_docker_and_terraform_are_read_from_their_files() -> None:
    docker = Machine(files={"/etc/docker/daemon.json": '{"registry-mirrors": ["https://m.test"]}'})
    assert urls(ASKING["docker"](docker)) == ["https://m.test"]
    mirror = 'provider_installation {\n  network_mirror {\n    url = "https://t.test/providers/"\n  }\n}'
    assert urls(ASKING["terraform"](Machine(files={"~/.terraformrc": mirror}))) == ["https://t.test/providers/"]
