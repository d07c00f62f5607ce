"""`dq schema` prints JSON Schemas."""

from __future__ import annotations

import json

import pytest
from jsonschema.validators import validator_for

from dq.cli.main import run
from dq.operations.output_schemas import SCHEMAS


@pytest.mark.parametrize("of", SCHEMAS)
def test_each_is_a_schema(capsys, of):
    assert run(["schema", of]) == 0

    schema = json.loads(capsys.readouterr().out)
    validator_for(schema).check_schema(schema)


def test_without_a_name_it_is_the_extension(capsys):
    run(["schema"])
    plain = capsys.readouterr().out
    run(["schema", "extension"])

    assert capsys.readouterr().out == plain


def test_one_that_is_not_there_is_a_usage_error_with_the_nearest(capsys):
    assert run(["schema", "finding"]) == 2

    assert "Did you mean 'findings'?" in capsys.readouterr().err
