"""Windows' error numbers at a start: one cause and one remedy each."""

import pytest

from doorward.launcher.windows_errors import ApiError, explain, failure_of_start, unavailable


@pytest.mark.parametrize("number", [5, 740, 1312, 1314, 1326, 1385, 1909])
def test_a_known_number_has_a_cause_and_a_remedy(number):
    """P-PL-05."""
    sentence, remedy = explain(ApiError("CreateProcessAsUserW", number))
    assert f"error {number}" in sentence and "CreateProcessAsUserW" in sentence
    assert len(sentence) > 60 and remedy
    assert "\n" not in sentence + remedy


def test_each_has_its_own_cause():
    sentences = {explain(ApiError("f", number))[0] for number in (5, 740, 1312, 1326, 1909)}
    assert len(sentences) == 5


def test_an_unknown_number_is_told_with_its_call():
    error = unavailable(ApiError("CreateJobObjectW", 4711))
    assert "CreateJobObjectW" in error.sentence and "4711" in error.sentence
    assert "report" in error.remedy


@pytest.mark.parametrize(
    ("number", "kind"),
    [(2, "not-found"), (3, "not-found"), (193, "not-executable"), (267, "directory"), (1920, "not-executable"),
     (740, "not-executable"), (5, "sandbox"), (1312, "sandbox"), (1326, "sandbox"), (1909, "sandbox")],
)  # fmt: skip
def test_what_a_failed_start_means(number, kind):
    """P-PL-05."""
    assert failure_of_start(ApiError("CreateProcessAsUserW", number), "pwsh").kind == kind
