"""What other sandboxes' settings come to: taken over where there is an equivalent, named where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.foreign import claude_code, codex, fence, nono, srt
from doorward.foreign.equivalent import Equivalent


def left(found: Equivalent) -> list[str]:
    return [each.where for each in found.left]


def arrays(found: Equivalent) -> dict[str, list[str]]:
    return {key: entries for key, entries in found.arrays.items() if entries}


def test_srt() -> None:
    found = srt.equivalent_of(
        {
            "network": {
                "allowedDomains": ["example.test", "*.corp.test:8443"],
                "deniedDomains": ["bad.test"],
                "deniedResolvedAddresses": ["203.0.113.0/24"],
                "allowUnixSockets": ["/run/docker.sock"],
                "allowLocalBinding": True,
                "allowAllUnixSockets": True,
                "parentProxy": {"http": "http://proxy.corp.test:3128", "noProxy": "x.test"},
                "tlsTerminate": {"enabled": True},
            },
            "filesystem": {
                "denyRead": ["~/.ssh", {"path": "/srv/*.key", "literal": True}],
                "allowWrite": [".", "/srv/out"],
                "denyWrite": [".env"],
                "allowRead": ["~/.ssh/known_hosts"],
            },
            "ignoreViolations": {},
            "enableWeakerNestedSandbox": True,
        }
    )
    assert arrays(found) == {
        "network.allow": ["example.test", "*.corp.test:8443"],
        "network.deny": ["bad.test", "203.0.113.0/24"],
        "filesystem.write": ["/srv/out"],
        "filesystem.read_only": [".env"],
        "filesystem.deny_read": ["~/.ssh", "/srv/*.key"],
        "filesystem.allow_unix": ["/run/docker.sock"],
    }
    assert found.values["network", "upstream_proxy"] == "http://proxy.corp.test:3128"
    assert set(left(found)) == {
        "network.allowAllUnixSockets",
        "network.parentProxy.noProxy",
        "network.tlsTerminate",
        "filesystem.allowRead: ~/.ssh/known_hosts",
        "enableWeakerNestedSandbox",
    }
    assert any("80 and 443" in notice for notice in found.notices)


@pytest.mark.parametrize("entry", ["https://x.test", "*.com", "a b", "", 7, None])
def test_what_is_no_rule_here_is_named_and_not_taken(entry: object) -> None:
    found = srt.equivalent_of({"network": {"allowedDomains": [entry, "ok.test"]}})
    assert arrays(found) == {"network.allow": ["ok.test"]} and len(found.left) == 1


@pytest.mark.parametrize("settings", [{"network": []}, {"network": {"allowedDomains": "x"}}, {"filesystem": 3}])
def test_settings_of_another_shape_are_named(settings: dict[str, Any]) -> None:
    for importer in (srt, fence):
        assert importer.equivalent_of(settings).left


def test_fence() -> None:
    found = fence.equivalent_of(
        {
            "extends": "code",
            "network": {
                "allowedDomains": ["a.test"],
                "allowLocalOutbound": True,
                "allowLocalOutboundPorts": [5432, 6379],
                "defaultAction": "proxy",
                "upstreamProxy": "http://127.0.0.1:8080",
            },
            "filesystem": {"denyRead": ["/etc/secret"], "defaultDenyRead": True},
            "command": {"deny": ["git push", "npm publish"], "allow": ["git status"], "useDefaults": True},
            "ssh": {"allowedHosts": ["*.a.test"]},
        }
    )
    assert arrays(found) == {"network.allow": ["a.test"], "filesystem.deny_read": ["/etc/secret"]}
    assert found.rules == [
        'prefix_rule(pattern = ["git", "push"], decision = "forbidden")',
        'prefix_rule(pattern = ["npm", "publish"], decision = "forbidden")',
        'prefix_rule(pattern = ["git", "status"], decision = "allow")',
    ]
    assert set(left(found)) == {
        "extends: code",
        "network.allowLocalOutboundPorts",
        "network.defaultAction",
        "filesystem.defaultDenyRead",
        "ssh",
    }
    assert any("--allow-loopback 5432,6379" in each.why for each in found.left)


def test_nono() -> None:
    found = nono.equivalent_of(
        {
            "meta": {"name": "x"},
            "filesystem": {
                "allow": ["/srv/a", {"path": "/srv/b", "when": "macos"}],
                "read": ["/usr"],
                "deny": ["~/.aws"],
                "unix_socket": ["/run/x.sock"],
                "bypass_protection": ["/etc"],
            },
            "network": {
                "allow_domain": ["a.test", {"domain": "b.test", "endpoints": []}],
                "deny_domain": ["c.test"],
                "open_port": [5432],
                "upstream_proxy": "proxy.test:3128",
            },
            "env_credentials": {"github": "GITHUB_TOKEN"},
            "workdir": {"access": "read"},
        }
    )
    assert arrays(found) == {
        "network.allow": ["a.test"],
        "network.deny": ["c.test"],
        "filesystem.write": ["/srv/a", "/srv/b"],
        "filesystem.deny_read": ["~/.aws"],
        "filesystem.allow_unix": ["/run/x.sock"],
    }
    assert found.values == {("sandbox_mode",): "read-only", ("network", "upstream_proxy"): "http://proxy.test:3128"}
    assert set(left(found)) == {
        "filesystem.allow: /srv/b",
        "filesystem.bypass_protection",
        "network.allow_domain: b.test",
        "network.open_port",
        "env_credentials: github",
    }


def test_nono_with_the_network_blocked_or_open() -> None:
    assert nono.equivalent_of({"network": {"block": True}}).values == {("network", "mode"): "off"}
    assert "nothing is reached" in nono.equivalent_of({}).notices[0]


def test_claude_code() -> None:
    found = claude_code.equivalent_of(
        {
            "permissions": {
                "allow": [
                    "Bash(npm run test:*)",
                    "Bash(npm ci)",
                    "Bash(git log --format=* x)",
                    "WebFetch(domain:docs.test)",
                    "Read(**)",
                    "mcp__x__y",
                ],
                "ask": ["Bash(git push *)"],
                "deny": [
                    "Bash(rm -rf /)",
                    "Read(./.env)",
                    "Read(//etc/shadow)",
                    "Edit(/src/gen/**)",
                    "WebFetch(domain:x.test)",
                ],
                "additionalDirectories": ["../docs"],
                "defaultMode": "acceptEdits",
            },
            "sandbox": {"enabled": True, "network": {"allowedDomains": ["a.test"]}, "excludedCommands": ["docker"]},
            "env": {"FOO": "1"},
            "model": "x",
        }
    )
    assert found.rules == [
        'prefix_rule(pattern = ["rm", "-rf", "/"], decision = "forbidden")',
        'prefix_rule(pattern = ["git", "push"], decision = "prompt")',
        'prefix_rule(pattern = ["npm", "run", "test"], decision = "allow")',
    ]
    assert arrays(found) == {
        "network.allow": ["docs.test", "a.test"],
        "network.deny": ["x.test"],
        "filesystem.write": ["../docs"],
        "filesystem.read_only": ["src/gen/**"],
        "filesystem.deny_read": [".env", "/etc/shadow"],
    }
    assert found.values == {("approval_policy",): "on-request"}
    assert set(left(found)) == {
        "permissions.allow: Bash(npm ci)",
        "permissions.allow: Bash(git log --format=* x)",
        "permissions.allow: Read(**)",
        "permissions.allow: mcp__x__y",
        "sandbox.excludedCommands: docker",
        "env.FOO",
    }


@pytest.mark.parametrize("mode", ["bypassPermissions", "new"])
def test_no_setting_skips_the_sandbox(mode: str) -> None:
    found = claude_code.equivalent_of({"permissions": {"defaultMode": mode}})
    assert not found.values and mode in left(found)[0]


def test_codex() -> None:
    found = codex.equivalent_of(
        {
            "sandbox_mode": "workspace-write",
            "approval_policy": "untrusted",
            "sandbox_workspace_write": {
                "writable_roots": ["/srv/out"],
                "network_access": True,
                "exclude_slash_tmp": True,
            },
            "shell_environment_policy": {
                "inherit": "core",
                "include_only": ["PATH", "AWS_*"],
                "exclude": ["X"],
                "set": {"A": "1"},
            },
            "projects": {"/srv/p": {"trust_level": "trusted"}},
            "permissions": {
                "dev": {
                    "network": {"enabled": True, "mode": "limited", "domains": {"a.test": "allow", "b.test": "deny"}},
                    "filesystem": {"/srv/x": "write", "~/.ssh": "none", ":cwd": "write"},
                }
            },
            "mcp_servers": {"x": {}},
            "model": "m",
        }
    )
    assert arrays(found) == {
        "network.allow": ["a.test"],
        "network.deny": ["b.test"],
        "filesystem.write": ["/srv/out", "/srv/x"],
        "filesystem.deny_read": ["~/.ssh"],
        "env.pass": ["PATH"],
    }
    assert found.values == {
        ("sandbox_mode",): "workspace-write",
        ("approval_policy",): "untrusted",
        ("env", "inherit"): "core",
        ("projects", "/srv/p", "trust_level"): "trusted",
        ("network", "mode"): "limited",
    }
    assert set(left(found)) == {
        "sandbox_workspace_write.network_access",
        "shell_environment_policy.include_only: AWS_*",
        "shell_environment_policy.exclude: X",
        "shell_environment_policy.set.A",
        "permissions.dev.filesystem.:cwd",
        "mcp_servers",
    }
