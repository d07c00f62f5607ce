"""No part of a password leaves dq, however oddly the address of the state store is written."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from fakes import postgres

from dq.cli.main import run
from dq.contracts.outcome import DqError
from dq.operations.runtime.context import runtime_context
from dq.store.engine import open_store, redacted_url

# The two halves of the password of every row; neither may be seen, nor their beginnings.
HALVES = ("hunt3r", "sw0rd")
CONTRACT = "apiVersion: v3.2.0\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"
HOST = "127.0.0.1:1/dq"
ODD = {
    "a usual one": f"postgresql://dq:hunt3rsw0rd@{HOST}",
    "two at signs": f"postgresql://dq:hunt3r@sw0rd@{HOST}",
    "an at sign and a slash": f"postgresql://dq:hunt3r@sw0rd/x@{HOST}",
    "an at sign and a question mark": f"postgresql://dq:hunt3r@sw0rd?x@{HOST}",
    "an at sign and a colon": f"postgresql://dq:hunt3r@sw0rd:x@{HOST}",
    "an at sign and brackets": f"postgresql://dq:hunt3r@[sw0rd]@{HOST}",
    "a slash": f"postgresql://dq:hunt3r/sw0rd@{HOST}",
    "a slash before the colon": f"postgresql://dq/hunt3r:sw0rd@{HOST}",
    "a hash": f"postgresql://dq:hunt3r#sw0rd@{HOST}",
    "a question mark": f"postgresql://dq:hunt3r?sw0rd@{HOST}",
    "brackets": f"postgresql://dq:[hunt3r]sw0rd@{HOST}",
    "colons": f"postgresql://dq:hunt3r:sw0rd:@{HOST}",
    "a percent sign that escapes nothing": f"postgresql://dq:%hunt3r%sw0rd@{HOST}",
    "an at sign as it should be written": f"postgresql://dq:hunt3r%40sw0rd@{HOST}",
    "Unicode and a blank": f"postgresql://dq:hunt3rü ＠sw0rd@{HOST}",
    "bytes that are no text": f"postgresql://dq:hunt3r\udcffsw0rd@{HOST}",
    "a line break": f"postgresql://dq:hunt3r\nsw0rd@{HOST}",
    "no user": f"postgresql://:hunt3rsw0rd@{HOST}",
    "no host": "postgresql://dq:hunt3rsw0rd@",
    "the host forgotten": "postgresql://dq:hunt3rsw0rd/dq",
    "the slashes forgotten": f"postgresql:dq:hunt3rsw0rd@{HOST}",
    "the password alone": "hunt3rsw0rd",
    "a password in the query": f"postgresql://{HOST}?user=dq&password=hunt3rsw0rd",
    "the key's password in the query": f"postgresql://dq@{HOST}?sslpassword=hunt3rsw0rd",
    "a file of passwords in the query": f"postgresql://dq@{HOST}?passfile=/home/hunt3r/sw0rd",
    "options in the query": f"postgresql://dq@{HOST}?options=-chunt3r%3Dsw0rd",
    "a service in the query": f"postgresql://dq@{HOST}?service=hunt3rsw0rd",
    "the password as a setting's name": f"postgresql://dq@{HOST}?hunt3rsw0rd=1",
    "the password as a number of seconds": f"postgresql://dq@{HOST}?connect_timeout=hunt3rsw0rd",
    "hosts in the query": f"postgresql://dq@{HOST}?host=a:1&host=b:hunt3rsw0rd",
    "several hosts": "postgresql://dq:hunt3rsw0rd@a:1,b:2/dq",
    "a file with a user": "sqlite://dq:hunt3rsw0rd@/store.db",
    "a database that dq does not know": "mysql://dq:hunt3rsw0rd@host/dq",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLACK_BOT_TOKEN", raising=False)
    (tmp_path / "orders.odcs.yaml").write_text(CONTRACT)
    return tmp_path


@pytest.mark.parametrize("command", [("doctor",), ("doctor", "--format", "json"), ("status",), ("watch",)])
@pytest.mark.parametrize("url", [pytest.param(url, id=story) for story, url in ODD.items()])
def test_no_part_of_a_password_is_printed(folder, monkeypatch, capfd, url, command):
    monkeypatch.setenv("DQ_STORE_URL", url)

    code = run(list(command))

    printed = "".join(capfd.readouterr())
    assert code in (2, 3)
    assert [half for half in HALVES if half in printed] == []


@pytest.mark.parametrize("url", [pytest.param(url, id=story) for story, url in ODD.items()])
def test_no_part_of_a_password_stands_in_the_error_or_in_what_it_came_from(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(DqError) as caught:
        open_store(url)

    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert [half for half in HALVES if half in shown] == []


@pytest.mark.parametrize(
    "query", ["sslpassword=hunt3rsw0rd", "passfile=/tmp/hunt3rsw0rd", "options=-cdq.x%3Dhunt3rsw0rd"]
)
def test_doctor_shows_a_store_that_answers_without_what_opens_it(folder, monkeypatch, capfd, query):
    with postgres.new_database() as url:
        monkeypatch.setenv("DQ_STORE_URL", f"{url}?{query}")
        run(["store", "upgrade"])

        run(["doctor"])

    printed = "".join(capfd.readouterr())
    assert "✓ store" in printed
    assert [secret for secret in (*HALVES, postgres.PASSWORD) if secret in printed] == []


def test_the_address_of_a_store_is_shown_without_password_and_query(tmp_path):
    with postgres.new_database() as url:
        store = open_store(f"{url}?sslpassword=hunt3rsw0rd")
        shown = redacted_url(store.engine.url)
        store.close()

    assert shown == url.replace(postgres.PASSWORD, "***")


def test_a_file_whose_path_has_an_at_sign_is_a_store(folder, monkeypatch, capfd):
    monkeypatch.setenv("DQ_STORE_URL", f"sqlite:///{folder}/a@b:c/store.db")

    assert run(["status"]) == 0
    assert (folder / "a@b:c" / "store.db").is_file()


def test_the_world_does_not_show_its_environment(monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-hunt3rsw0rd")

    assert "hunt3rsw0rd" not in repr(runtime_context())


def test_a_channel_that_is_not_set_up_is_named_without_its_settings(folder, monkeypatch, capfd):
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-hunt3rsw0rd")
    monkeypatch.setenv("DQ_SLACK_URL", "http://dq:hunt3rsw0rd@example.com/api")
    monkeypatch.setenv("DQ_SLACK_TIMEOUT_SECONDS", "1")

    for command in (["doctor"], ["watch", "--channel", "slack:#a"], ["status"]):
        run(command)

    assert "hunt3r" not in "".join(capfd.readouterr())
