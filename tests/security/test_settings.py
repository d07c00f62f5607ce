"""The operator's settings: of one named file and of variables, and refused where they are not theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fakes.desk import Desk

from dq.contracts.outcome import UsageError
from dq.operations.runtime.settings import TABLE, Settings, read

CONTRACT = "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: draft\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    home = tmp_path / "work"
    home.mkdir()
    made = Desk(home, monkeypatch, capfd)
    made.write("registry/a.odcs.yaml", CONTRACT)
    (home / "registry" / ".git").mkdir()
    return made


def of(text: str, folder: Path, **variables: str) -> Settings:
    (folder / "dq.toml").write_text(text)
    return read(variables, folder, "dq.toml")


@pytest.mark.parametrize(
    ("text", "variables", "name", "value"),
    [
        ("", {}, "vars", ()),
        ('vars = ["A", "B"]', {}, "vars", ("A", "B")),
        ('vars = ["A"]', {"DQ_VARS": "B, C\nD"}, "vars", ("B", "C", "D")),
        ('vars = ["A"]', {"DQ_VARS": ""}, "vars", ("A",)),
        ("", {}, "lake_roots", None),
        ("lake_roots = []", {}, "lake_roots", ()),
        ('lake_roots = ["s3://a", "/b", "c"]', {}, "lake_roots", ("s3://a", "/b", "{folder}/c")),
        ("", {"DQ_LAKE_ROOTS": "s3://a,c"}, "lake_roots", ("s3://a", "{folder}/c")),
        ('hosts = ["nn:8020"]', {}, "hosts", ("nn:8020",)),
        ('channels = ["slack:#a-*"]', {}, "channels", ("slack:#a-*",)),
        ("file_channels = false", {}, "file_channels", ""),
        ('file_channels = "off"', {}, "file_channels", ""),
        ('file_channels = "alerts"', {"DQ_FILE_CHANNELS": "off"}, "file_channels", ""),
        ('file_channels = "alerts"', {}, "file_channels", "{folder}/alerts"),
        ("rule_seconds = 60", {}, "rule_seconds", 60),
        ("", {"DQ_RULE_SECONDS": "7"}, "rule_seconds", 7),
        ("", {}, "rule_seconds", 1800),
        ("slack_timeout_seconds = 2.5", {}, "slack_timeout_seconds", "2.5"),
        ('store_url = "sqlite:////x.db"', {}, "store_url", "sqlite:////x.db"),
    ],
)
def test_a_setting_is_the_variables_else_the_files_else_the_default(tmp_path, text, variables, name, value):
    found = getattr(of(text, tmp_path, **variables), name)

    def here(one):
        return one.replace("{folder}", str(tmp_path)) if isinstance(one, str) else one

    assert found == (tuple(map(here, value)) if isinstance(value, tuple) else here(value))


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('vars = ["A"]\nlake_root = ["s3://a"]', "dq.toml:2: unknown setting 'lake_root'", "'lake_roots'"),
        ("[lake_roots]\na = 1", "dq.toml:1: lake_roots must be a list", "lake_roots = ["),
        ("[zzz]\na = 1", "dq.toml:1: unknown setting 'zzz'", "Settings: vars,"),
        ('lake_roots = "s3://a"', "dq.toml:1: lake_roots must be a list", "lake_roots = ["),
        ("\n\nlake_roots = [1]", "dq.toml:3: lake_roots must be a list", ""),
        ('lake_roots = [""]', "dq.toml:1: lake_roots must be a list", ""),
        ('vars = ["A-B"]', "dq.toml:1: vars must be a list of variable names", ""),
        ('rule_seconds = "60"x', "dq.toml:1:", "Fix this line"),
        ("rule_seconds = 0", "must be a positive integer", ""),
        ("rule_seconds = true", "must be a positive integer", ""),
        ("rule_seconds = 1.5", "must be a positive integer", ""),
        ("file_channels = true", "must be a folder", ""),
        ("store_url = 5", "must be a string", ""),
        ("vars = [", "invalid TOML", ""),
        ("a = 1\na = 2", "invalid TOML", ""),
        ("\x00", "invalid TOML", ""),
        ("x" * 70_000, "is larger than", ""),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_at_its_line(tmp_path, text, said, hint):
    with pytest.raises(UsageError) as caught:
        of(text, tmp_path)

    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"), [("DQ_RULE_SECONDS", "soon"), ("DQ_RULE_SECONDS", "-1"), ("DQ_VARS", "a b")]
)
def test_a_variable_that_cannot_be_understood_is_refused(tmp_path, name, value):
    with pytest.raises(UsageError, match=name):
        read({name: value}, tmp_path)


@pytest.mark.parametrize("given", ["option", "variable"])
def test_the_file_is_named_and_never_found(desk, given):
    desk.write("dq.toml", "broken = [")
    desk.write("registry/dq.toml", "broken = [")
    named = desk.write("../settings/dq.toml", "broken = [")
    line = ("--config", str(named), "status", "registry")

    unnamed = desk.dq("status", "registry")
    asked = desk.dq(*line) if given == "option" else desk.dq("status", "registry", DQ_CONFIG=str(named))

    assert unnamed.code == 0
    assert asked.code == 2
    assert "dq.toml:1" in asked.err


def test_the_option_wins_over_the_variable(desk):
    good = desk.write("../settings/good.toml", "rule_seconds = 5")

    assert desk.dq("--config", str(good), "status", "registry", DQ_CONFIG="absent.toml").code == 0
    assert desk.dq(f"--config={good}", "status", "registry", DQ_CONFIG="absent.toml").code == 0
    assert desk.dq("status", "registry", DQ_CONFIG="absent.toml").code == 2


def test_an_option_is_forgotten_with_its_command_line(desk):
    desk.dq("--config", "absent.toml", "status", "registry")

    assert desk.dq("status", "registry").code == 0


@pytest.mark.parametrize("place", ["registry/dq.toml", "registry/.git/dq.toml", "linked.toml"])
def test_settings_that_a_pull_request_could_bring_are_refused(desk, place):
    desk.write("registry/sub/dq.toml", "rule_seconds = 5")
    if place == "linked.toml":
        (desk.folder / place).symlink_to(desk.folder / "registry" / "sub" / "dq.toml")
    else:
        desk.write(place, "rule_seconds = 5")

    ran = desk.dq("--config", place, "status", "registry")

    assert ran.code == 2
    assert "is in the registry" in ran.err


def test_a_link_to_a_file_of_the_operator_is_followed(desk):
    real = desk.write("../settings/dq.toml", "rule_seconds = 5")
    (desk.folder / "linked.toml").symlink_to(real)

    assert desk.dq("--config", "linked.toml", "status", "registry").code == 0


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="a folder"),
        pytest.param(lambda path: os.mkfifo(path), id="a FIFO"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="a device"),
        pytest.param(lambda path: path.symlink_to(path), id="a loop"),
        pytest.param(lambda path: path.write_bytes(b"\xff"), id="no text"),
        pytest.param(lambda path: None, id="nothing"),
        pytest.param(lambda path: (path.touch(), path.chmod(0o666)), id="what everybody may write"),
    ],
)
def test_what_is_no_file_of_settings_is_refused_at_once(desk, make):
    make(desk.folder / "dq.toml")

    ran = desk.dq("--config", "dq.toml", "status", "registry")

    assert ran.code == 2
    assert "dq.toml" in ran.err


def test_no_setting_is_shown_that_may_hold_a_password(tmp_path):
    with pytest.raises(UsageError) as caught:
        of('store_url = ["postgresql://dq:s3cret@db/dq"]', tmp_path)

    assert "s3cret" not in str(caught.value)


def test_every_setting_has_its_row(tmp_path):
    assert [row.variable for row in TABLE] == [f"DQ_{row.name.upper()}" for row in TABLE]
    assert all(row.help and row.help.endswith(".") for row in TABLE)
    assert Settings() == read({}, tmp_path)


def test_doctor_lists_the_settings_that_are_set_and_those_that_are_none(desk):
    ran = desk.dq("doctor", DQ_LAKE_ROOTS="s3://a", DQ_LAKE_ROOT="s3://b", DQ_STORE_URL="")

    assert "lake_roots" in ran.out
    assert "unknown setting DQ_LAKE_ROOT" in ran.out
    assert "DQ_LAKE_ROOTS" in ran.out
