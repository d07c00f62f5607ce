"""Subscription to personal or restricted data, or of another AWS account, without a binding approval.

Why: The producer decides who reads such data and for which purpose, and `dq register` grants nothing without
that decision. A name that the consumer writes into the file proves nothing. By default, an approval binds if
the approver adds their name to the request of someone else, in a commit signed with their SSH key. The keys
are in `allowed_signers` next to the policy, in the form of ssh-keygen. Wider terms need a new approval.

Bad:
    columns: [orders.order_id, orders.email]

Good:
    columns: [orders.order_id, orders.email]
    approvers: [ana@example.com]

How to fix: Ask the contract's owner to approve the request as in docs/how-to/subscriptions.md, or remove the
columns. Without `columns` and `tags`, a subscription covers every column. In the policy, `proof: codeowners`
relies on the review that the branch in `branch` requires, and `proof: names` on the names alone. With
`signed_requests: true`, the consumer has to sign the request, too: Git proves nothing about unsigned authors.
"""

import re

from dq.contracts.model import Contract
from dq.contracts.outcome import join_limited
from dq.contracts.subscriptions import ProofTerms, approvers, covered_objects
from dq.validators.rule import (
    Argument,
    Rule,
    Severity,
    Subscription,
    SubscriptionContext,
    Violation,
    Violations,
    subscription_rule,
)

_DEFAULT = ProofTerms()
_ASK_APPROVER = "Ask an approver ({}) to add their name under 'approvers', in a signed commit of their own."
_NAME_APPROVER = "Add 'approvers: [NAME]' with an approver ({}), who reviews the change."
_SIGN_AGAIN = "Remove the name, and let the approver add it in a signed commit, merged with a merge commit"
_APPROVE = "An approver has to approve the current terms"
_READER = re.compile(r"(arn:aws[a-z-]*:iam::)?(?P<account>[0-9]{12})(?(1):|$)", re.ASCII)
CLASSES = Argument(
    "classifications",
    ("pii", "personal", "sensitive", "restricted", "confidential"),
    "Classifications that require an approval, case-insensitive.",
)
OTHER_ACCOUNTS = Argument("other_accounts", True, "Access of other AWS accounts requires an approval.")
OWN_ACCOUNTS: Argument[tuple[str, ...]] = Argument(
    "own_accounts", (), "AWS accounts that are not other accounts."
)
PROOF = Argument("proof", _DEFAULT.proof, "What proves an approval: signature, codeowners or names.")
SIGNERS = Argument("signers", _DEFAULT.signers, "File with the SSH keys, below the registry's root.")
BRANCH = Argument("branch", _DEFAULT.branch, "For codeowners: the branch that requires their review.")
SIGNED_REQUESTS = Argument("signed_requests", False, "The author of the request has to sign it, too.")


def check(subscription: Subscription, context: SubscriptionContext) -> Violations:
    contract = context.contract(subscription)
    if contract is None:
        return
    key, reason = _requirement(subscription, contract, context)
    if not reason:
        return
    is_signed = context.value(PROOF) == "signature"
    if not subscription.approvers:
        message = f"{reason}, but this use has no approver."
        approving = context.approving_contract(subscription) or contract
        names = approvers(approving, max(context.today, subscription.start_date))
        # Keys belong to people, by their address.
        people = [name for name in names if is_signed and "@" in name]
        shown = join_limited(people or names, 3) or "the contract has none yet"
        hint = (_ASK_APPROVER if is_signed else _NAME_APPROVER).format(shown)
        yield Violation(subscription.locate(key), message, hint, subscription.path(key))
    elif context.approval_of is not None:
        approval = context.approval_of(subscription, contract, proof_terms(context))
        if not approval.binds:
            message = f"{reason}, but no approval binds: {'; '.join(approval.reasons)}."
            hint = f"{_SIGN_AGAIN if is_signed else _APPROVE}; see docs/how-to/subscriptions.md."
            yield Violation(subscription.locate("approvers"), message, hint, subscription.path("approvers"))


def proof_terms(context: SubscriptionContext) -> ProofTerms:
    """Return the policy's terms for approvals."""
    return ProofTerms(
        context.value(PROOF), context.value(SIGNERS), context.value(BRANCH), context.value(SIGNED_REQUESTS)
    )


def _requirement(
    subscription: Subscription, contract: Contract, context: SubscriptionContext
) -> tuple[str, str]:
    """Return the key and the reason for which the subscription needs an approval, or two empty texts."""
    classes = {word.lower() for word in context.value(CLASSES)}
    # A branch that lowers a classification needs the approval that the base requires.
    base = context.base_contracts.get(subscription.identity)
    for version in (contract, base) if base is not None else (contract,):
        for part in covered_objects(subscription, version):
            prop = next(
                (p for p in part.walk_properties() if (p.classification or "").lower() in classes), None
            )
            if prop is not None:
                key = "columns" if subscription.columns else "tags" if subscription.tags else "contract"
                name = f"{part.object.name}.{prop.name or prop.column or 'an item'}"
                return key, f"{name} is {prop.classification}"
    reader = subscription.reader
    match = _READER.match(reader)
    is_own = match is not None and match["account"] in context.value(OWN_ACCOUNTS)
    if reader and not is_own and context.value(OTHER_ACCOUNTS):
        return "consumer", f"{reader} is not of an account in own_accounts"
    return "", ""


RULE: Rule = subscription_rule(
    "subscription-without-approver",
    Severity.ERROR,
    __doc__,
    check,
    arguments=(CLASSES, OTHER_ACCOUNTS, OWN_ACCOUNTS, PROOF, SIGNERS, BRANCH, SIGNED_REQUESTS),
)
