"""A real `doorward` with rules files of its own."""

from __future__ import annotations

from pathlib import Path

import doorward_command
import pytest


class Doorward(doorward_command.Doorward):
    """Writes rules files too."""

    def rules(self, text: str, name: str = "a.rules", folder: Path | None = None) -> Path:
        """Write a rules file, the person's own unless `folder` says otherwise."""
        file = (folder or self.home / "rules") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def doorward(tmp_path: Path) -> Doorward:
    """A doorward with nothing in its home yet."""
    return Doorward(tmp_path)
