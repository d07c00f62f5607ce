"""A registry in a real Git repository, with one commit at a time."""

from __future__ import annotations

from pathlib import Path

from git import Repo


class Registry:
    """A registry in a repository of its own, with one commit at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = Repo.init(folder, initial_branch="main")
        with self.repo.config_writer() as config:
            config.set_value("user", "name", "Ana")
            config.set_value("user", "email", "ana@example.com")

    def write(self, file: str, text: str | bytes) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, files: dict[str, str | bytes | None], day: str = "2025-01-01") -> str:
        """Writes and commits files; None deletes one. The commit's time is noon of the day."""
        for file, text in files.items():
            if text is None:
                (self.folder / file).unlink()
            else:
                self.write(file, text)
        self.repo.git.add("--all")
        when = f"{day}T12:00:00"
        self.repo.index.commit("change", author_date=when, commit_date=when)
        return str(self.repo.head.commit.hexsha)

    def branch(self, name: str) -> None:
        self.repo.git.checkout("-q", "-b", name)
