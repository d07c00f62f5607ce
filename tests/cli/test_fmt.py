"""`dq fmt` at the command line: writes, checks, shows, and leaves alone what it cannot read."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from dq.cli.main import run

MESSY = "# Orders\nid: orders\nkind: DataContract\ntags:\n- a  # first\n"
NEAT = "# Orders\nkind: DataContract\nid: orders\ntags:\n  - a  # first\n"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a messy contract and a neat one."""
    (tmp_path / "messy.odcs.yaml").write_text(MESSY)
    (tmp_path / "neat.odcs.yaml").write_text(NEAT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_messy_files_are_written_and_neat_ones_not_touched(registry, capsys):
    touched = (registry / "neat.odcs.yaml").stat().st_mtime_ns
    (registry / "messy.odcs.yaml").chmod(0o640)

    assert run(["fmt"]) == 0

    out, err = capsys.readouterr()
    assert (out, err) == ("Wrote messy.odcs.yaml.\n", "2 contracts: 1 changed.\n")
    assert (registry / "messy.odcs.yaml").read_text() == NEAT
    assert (registry / "messy.odcs.yaml").stat().st_mode & 0o777 == 0o640
    assert (registry / "neat.odcs.yaml").stat().st_mtime_ns == touched
    assert sorted(one.name for one in registry.iterdir()) == ["messy.odcs.yaml", "neat.odcs.yaml"]


def test_a_second_run_has_nothing_to_do(registry, capsys):
    run(["fmt"])

    assert run(["fmt", "--check"]) == 0
    assert "2 contracts: all formatted." in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_not_said_to_be_and_stops_no_other(registry, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    (registry / "long.odcs.yaml").write_text(MESSY + "# " + "." * 999)

    resource.setrlimit(resource.RLIMIT_FSIZE, (999, limits[1]))
    try:
        code = run(["fmt"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    out, err = capsys.readouterr()
    assert (code, out) == (3, "Wrote messy.odcs.yaml.\n")
    assert "long.odcs.yaml cannot be written" in err
    assert "3 contracts: 1 changed, 1 could not be written." in err
    assert (registry / "long.odcs.yaml").read_text().startswith(MESSY)


def test_check_lists_what_would_change_and_writes_nothing(registry, capsys):
    assert run(["fmt", "--check"]) == 1

    assert capsys.readouterr().out == "Would write messy.odcs.yaml.\n"
    assert (registry / "messy.odcs.yaml").read_text() == MESSY


def test_diff_shows_what_would_change_and_writes_nothing(registry, capsys):
    assert run(["fmt", "--diff"]) == 1

    assert capsys.readouterr().out.splitlines() == [
        "--- messy.odcs.yaml",
        "+++ messy.odcs.yaml (formatted)",
        "@@ -1,5 +1,5 @@",
        " # Orders",
        "+kind: DataContract",
        " id: orders",
        "-kind: DataContract",
        " tags:",
        "-- a  # first",
        "+  - a  # first",
    ]
    assert (registry / "messy.odcs.yaml").read_text() == MESSY


def test_what_is_no_yaml_is_left_alone_with_its_findings_and_the_rest_is_done(registry, capsys):
    (registry / "broken.odcs.yaml").write_text("a: [\n")

    assert run(["fmt"]) == 1

    assert "broken.odcs.yaml:2:1: error yaml-syntax: this is not YAML" in capsys.readouterr().err
    assert (registry / "broken.odcs.yaml").read_text() == "a: [\n"
    assert (registry / "messy.odcs.yaml").read_text() == NEAT


def test_what_is_beyond_the_writer_is_left_alone_with_the_line(registry, capsys):
    (registry / "odd.odcs.yaml").write_text("id: a\n? kind\n: DataContract\n")

    assert run(["fmt", "odd.odcs.yaml"]) == 1

    assert "odd.odcs.yaml: not changed: line 2: a key after '?'." in capsys.readouterr().err


def test_a_link_is_refused_and_the_file_that_it_leads_to_not_touched(registry, capsys):
    (registry / "link.odcs.yaml").symlink_to("messy.odcs.yaml")

    assert run(["fmt", "link.odcs.yaml"]) == 1

    assert "link.odcs.yaml is a link, not a file, and is not read." in capsys.readouterr().err
    assert (registry / "link.odcs.yaml").is_symlink()
    assert (registry / "messy.odcs.yaml").read_text() == MESSY


def test_a_path_that_is_not_there_cannot_be_judged(registry):
    assert run(["fmt", "nowhere"]) == 3
