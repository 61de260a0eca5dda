"""The rows agree with those who read them."""

from doorward.configuration_schema import KEY, KEYS, Key, Kind, Project, tree
from doorward.gates.dial import ApprovalPolicy, NetworkMode, SandboxMode, Trust
from doorward.gates.features import FEATURES
from doorward.proxy.limits import DEFAULT


def test_choices_are_the_gates_own_from_the_loosest_to_the_strictest() -> None:
    for name, enum in (
        ("sandbox_mode", SandboxMode),
        ("approval_policy", ApprovalPolicy),
        ("network.mode", NetworkMode),
    ):
        assert KEY[name].choices == tuple(reversed(enum))
    assert set(KEY["projects.*.trust_level"].choices) < set(Trust)


def test_every_limit_of_the_proxy_is_a_key_with_the_proxys_default() -> None:
    limits = {
        key.name.removeprefix("network.limits."): key.default for key in KEYS if key.name.startswith("network.limits.")
    }
    assert limits == DEFAULT._asdict()
    for key in KEYS:
        if key.name.startswith("network.limits.") and key.kind in (Kind.SECONDS, Kind.COUNT):
            assert isinstance(key.default, float if key.kind is Kind.SECONDS else int), key.name


def test_every_feature_is_a_key() -> None:
    named = {key.name: key.default for key in KEYS if key.name.startswith("features.")}
    assert named == {f"features.{feature.name}": feature.default for feature in FEATURES}


def test_rows_are_complete_and_defaults_are_valid() -> None:
    assert len(KEY) == len(KEYS)
    for key in KEYS:
        assert key.doc and not key.doc.endswith(".")
        assert key.default is None or not key.choices or key.default in key.choices
        assert key.project is not Project.TIGHTEN or key.choices


def test_the_tree_has_every_row_once() -> None:
    def leaves(node: object) -> list[Key]:
        return [node] if isinstance(node, Key) else [leaf for below in node.values() for leaf in leaves(below)]  # type: ignore[attr-defined]

    assert sorted(leaves(tree())) == sorted(KEYS)
