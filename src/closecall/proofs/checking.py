"""A proof file, checked, and compared with a model."""

from __future__ import annotations

from pathlib import Path

from closecall.errors import InputError
from closecall.network import Network
from closecall.proofs.closecheck import Refused, Report, check
from closecall.proofs.lines import digest_of, exact_form


def check_proof(path: str | Path, network: Network | None = None, seconds: float | None = None) -> Report:
    """Check a proof file, also that it is about a network, if one is given; Refused with the reason."""
    try:
        report = check(str(path), seconds)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if network is not None:
        known = [digest_of(exact_form(each)) for each in (network, network.with_relu_outputs())]
        if report.network not in known:
            raise Refused("the proof is about another network than the model")
    return report
