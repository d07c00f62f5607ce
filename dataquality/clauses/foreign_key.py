"""Targets of relationships: columns of an object in the same or another loaded contract."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dq.contracts.agreement import agreements_of
from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, ExternalKeys, ForeignKey, NoResult, refuse
from dq.dataquality.model.column import Column, Target, classified, single_columns
from dq.dataquality.model.run_context import Unusable


class ExternalReference(ValueError):
    """A reference leads outside of the contract; the message names the contract that is needed."""


@dataclass(frozen=True, slots=True)
class ContractSet:
    """Loaded contracts, for references from one to another."""

    by_file: Mapping[str, Contract] = field(default_factory=dict)
    by_object: Mapping[str, tuple[Contract, ...]] = field(default_factory=dict)

    @staticmethod
    def from_contracts(contracts: Iterable[Contract]) -> ContractSet:
        """Index contracts by their files, and by the names and ids of their objects."""
        files: dict[str, Contract] = {}
        objects: dict[str, list[Contract]] = defaultdict(list)
        for contract in contracts:
            files.setdefault(posixpath.normpath(contract.file), contract)
            for name in {
                text
                for schema_object in contract.objects
                for text in (schema_object.name, schema_object.id)
                if text
            }:
                if not any(_is_same_contract(contract, other) for other in objects[name]):
                    objects[name].append(contract)
        return ContractSet(files, {name: tuple(owners) for name, owners in objects.items()})

    def object(self, name: str) -> SchemaObject | None:
        """Return the object with a target's name, e.g. `crm/customers`, or None."""
        key, _, inside = name.rpartition("/")
        owners = (other for other in self.by_object.get(inside, ()) if other.key == key)
        return next((other.object(inside) for other in owners), None)

    def has(self, contract_id: str, object_name: str) -> bool:
        """Return True if a contract with this id has the object."""
        return any(other.id == contract_id for other in self.by_object.get(object_name, ()))

    def contract_with(self, contract_id: str, object_name: str) -> Contract:
        """Return the contract with this id that has the object. Raises ExternalReference unless it is one."""
        owners = [other for other in self.by_object.get(object_name, ()) if other.id == contract_id]
        if len(owners) == 1:
            return owners[0]
        versions = ", ".join(sorted(str(other.version) for other in owners))
        raise ExternalReference(
            f"several versions of {contract_id} have the object {object_name!r}: {versions}"
            if owners
            else f"no given contract {contract_id} has the object {object_name!r}"
        )


NO_NEIGHBOURS = ContractSet()


def _is_same_contract(first: Contract, second: Contract) -> bool:
    """Return True if both are the same contract; contracts given as text share one file name."""
    return first is second or (first.file, first.key) == (second.file, second.key)


def follow_reference(clause: Clause, contract: Contract, neighbours: ContractSet) -> Clause:
    """Return the clause with its external reference resolved, if the other contract is available."""
    external_keys = clause.test.external_keys if isinstance(clause.test, NoResult) else None
    if external_keys is None:
        return clause
    return resolve_external(
        clause, external_keys, lambda: external_target(contract, external_keys.references, neighbours)[1]
    )


def resolve_external(clause: Clause, external_keys: ExternalKeys, find: Callable[[], Target]) -> Clause:
    """Return the clause with the target that `find` returns, or with the reason why there is none."""
    try:
        resolved = find()
    except ExternalReference as error:
        return replace(clause, test=NoResult(str(error), proven=False, external_keys=external_keys))
    except Unusable as error:
        return refuse(clause, f"its 'to': {error}")
    test = ForeignKey(external_keys.keys, resolved, f"do not match any {resolved}")
    return replace(clause, test=test, allowed=f"a key of {resolved}")


def external_target(
    contract: Contract, references: Sequence[str], neighbours: ContractSet
) -> tuple[tuple[Contract, SchemaObject], Target]:
    """Return the object of another contract that all references lead to, and their columns in this order.

    The target is named by the other contract's key and the object's name: `crm/customers`. Raises
    ExternalReference, with the reason, unless exactly one available contract has it, and Unusable like
    `target`.
    """
    places = [_external_contract(contract, text.strip(), neighbours) for text in references]
    contracts = {other.key: other for other, _ in places}
    if len(contracts) != 1:
        raise Unusable(f"its columns belong to several contracts: {', '.join(sorted(contracts))}")
    other = places[0][0]
    try:
        resolved = target(other, [path for _, path in places])
    except (ExternalReference, Unusable) as error:
        raise Unusable(f"in {other.key}, {str(error).replace('this contract', 'that contract')}") from error
    schema_object = next(
        schema_object for schema_object in other.objects if schema_object.name == resolved.object
    )
    return (other, schema_object), resolved if _is_same_contract(other, contract) else replace(
        resolved, object=f"{other.key}/{resolved.object}"
    )


def referenced_objects(
    contract: Contract, schema_object: SchemaObject, neighbours: ContractSet
) -> dict[str, tuple[Contract, SchemaObject]]:
    """Return the objects in other contracts that an object's relationships refer to, by target name."""
    targets = {}
    for element in (schema_object, *schema_object.walk()):
        for relationship in element.relationships:
            with suppress(ExternalReference, Unusable):
                place, resolved = external_target(contract, as_list(relationship.to), neighbours)
                targets[resolved.object] = place
    return {name: place for name, place in targets.items() if not _is_same_contract(place[0], contract)}


def refers_to_others(contract: Contract, neighbours: ContractSet) -> bool:
    """Return True if a relationship or a comparison of the contract leads to a contract that is not given."""
    for schema_object in contract.objects:
        for agreement in agreements_of(schema_object).values():
            other = agreement.other
            if other.contract is not None and not neighbours.has(other.contract, other.object):
                return True
        for element in (schema_object, *schema_object.walk()):
            if any(_is_elsewhere(contract, as_list(to.to), neighbours) for to in element.relationships):
                return True
    return False


def _is_elsewhere(contract: Contract, references: Sequence[str], neighbours: ContractSet) -> bool:
    with suppress(Unusable):
        try:
            target(contract, references)
        except ExternalReference:
            try:
                external_target(contract, references, neighbours)
            except ExternalReference:
                return True
    return False


def _external_contract(contract: Contract, text: str, neighbours: ContractSet) -> tuple[Contract, str]:
    """Return the contract that a reference leads to, and the reference within that contract."""
    file, hash_, inside = text.rpartition("#")
    if not hash_ and "/" not in text:
        return _contract_with_object(contract, text, neighbours)
    file_path = (file if hash_ else text).removeprefix("file://")
    sibling_path = posixpath.normpath(posixpath.join(posixpath.dirname(contract.file), file_path))
    other = neighbours.by_file.get(sibling_path) or neighbours.by_file.get(posixpath.normpath(file_path))
    if other is None or not hash_:
        raise ExternalReference(
            f"{text!r} refers to another contract; the contract {file_path!r} was not given"
        )
    return other, inside


def _contract_with_object(contract: Contract, path: str, neighbours: ContractSet) -> tuple[Contract, str]:
    """Find the contract by the object's name, which may contain dots. Raises if several have it."""
    parts = path.split(".")
    names = [".".join(parts[:size]) for size in range(len(parts) - 1, 0, -1)]
    for name in names:
        owners = [
            other for other in neighbours.by_object.get(name, ()) if not _is_same_contract(other, contract)
        ]
        if len(owners) > 1:
            several = ", ".join(sorted(f"{other.id} {other.version}" for other in owners))
            raise ExternalReference(
                f"{path!r} refers to another contract, and several have the object {name!r}: {several};"
                f" write {posixpath.basename(owners[0].file)}#{path}"
            )
        if owners:
            return owners[0], path
    raise ExternalReference(
        f"{path!r} refers to another contract; no given contract has the object {names[-1]!r}"
    )


def as_list(names: str | list[str] | None) -> list[str]:
    """Return one end of a relationship, one name or several, as a list."""
    return names if isinstance(names, list) else [names] if names else []


def has_relationships(schema_object: SchemaObject) -> bool:
    """Return True if the object or one of its properties has a relationship."""
    return any(element.relationships for element in (schema_object, *schema_object.walk()))


def target(contract: Contract, texts: Sequence[str]) -> Target:
    """Return the object that all references name, and their columns in this order.

    A reference is `object.property` by names (or the object's id), or `schema/<id>/properties/<id>` by ids,
    at any depth of structs.

    Raises:
        ExternalReference: A reference leads outside of the contract.
        Unusable: A reference names nothing, or a column inside an array or map.
    """
    resolved = [_resolve(contract, text.strip()) for text in texts]
    objects = {schema_object.name for schema_object, _ in resolved}
    if len(objects) != 1:
        raise Unusable(f"its columns belong to several objects: {', '.join(sorted(objects)) or 'none'}")
    secret = any(
        str(column.steps[0]).lower() in classified(schema_object) for schema_object, column in resolved
    )
    return Target(objects.pop(), tuple(column for _, column in resolved), secret)


def _resolve(contract: Contract, text: str) -> tuple[SchemaObject, Column]:
    file, hash_, inside = text.rpartition("#")
    path = inside.lstrip("/")
    if file or ("/" in path and not path.startswith("schema/")):
        needed = file if hash_ else text
        raise ExternalReference(f"{text!r} refers to another contract; the data of {needed!r} is needed")
    if path.startswith("schema/"):
        return _resolve_id(contract, path)
    return _resolve_name(contract, path)


def _resolve_name(contract: Contract, path: str) -> tuple[SchemaObject, Column]:
    is_known = False
    for schema_object in contract.objects:
        for name in {schema_object.name, schema_object.id or schema_object.name, schema_object.column}:
            is_known = is_known or path == name or path.startswith(f"{name}.")
            for properties, column in single_columns(schema_object.properties):
                if path == f"{name}.{'.'.join(prop.name or '' for prop in properties)}":
                    return schema_object, column
    if not is_known and "." in path:
        holder = path.partition(".")[0]
        raise ExternalReference(
            f"{path!r} refers to another contract; the contract with the object {holder!r} is needed"
        )
    message = f"{path!r} is not a column of this contract with a single value per row"
    raise Unusable(f"{message}; write object.property")


def _resolve_id(contract: Contract, path: str) -> tuple[SchemaObject, Column]:
    for schema_object in contract.objects:
        for properties, column in single_columns(schema_object.properties):
            ids = [schema_object.id, *(prop.id for prop in properties)]
            if None not in ids and path == "schema/" + "/properties/".join(str(part) for part in ids):
                return schema_object, column
    raise Unusable(f"{path!r} is not a column of this contract with a single value per row")
