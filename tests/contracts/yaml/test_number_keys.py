"""The reader knows every key of ODCS that takes a number."""

from __future__ import annotations

import typing

import pytest

from dq.contracts.model import Price, Property, Quality, TypeOptions
from dq.contracts.yaml.builder import NUMBER_KEYS


def _number_keys(model: type) -> set[str]:
    """The keys of a model that are numbers, or lists of numbers."""
    return {
        field.alias
        for field in model.model_fields.values()
        if {int, float} & ({field.annotation} | _parts(field.annotation))
    }


def _parts(annotation: object) -> set[object]:
    parts = set(typing.get_args(annotation))
    return parts.union(*(_parts(part) for part in parts))


@pytest.mark.parametrize("model", [Quality, TypeOptions, Property, Price])
def test_every_number_of_the_models_is_a_number_to_the_reader_T35(model):
    texts = {"validValues"}

    assert _number_keys(model) - texts <= NUMBER_KEYS
