"""Whether a proof is wanted beside a verdict, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from closecall.ask.posing import More, network_asked
from closecall.errors import QueryError
from closecall.files import prepare_file
from closecall.question.question import Question
from closecall.readers import Classifier
from closecall.verdict.verdict import Verdict


class MoreAndProof(More, total=False):
    """`proof`: a file for a proof of the lower bound; `deployed`: of the model in float32."""

    proof: str | Path | None
    deployed: bool


@dataclass(frozen=True)
class Proof:
    """A file for a proof, if one is wanted; `deployed`: of the model in float32."""

    path: str | Path | None
    deployed: bool = False

    @classmethod
    def taken(cls, more: MoreAndProof) -> tuple[Proof, More]:
        """What is said of a proof, and what is said of the question."""
        rest = {key: value for key, value in more.items() if key not in ("proof", "deployed")}
        return cls(more.get("proof"), more.get("deployed", False)), cast("More", rest)

    def check(self, question: Question) -> None:
        """Refuse, before any search, what cannot be had."""
        if self.path is None:
            if self.deployed:
                raise QueryError("what is deployed is proven in a proof: name a file for it, too.")
            return
        from closecall.proofs.proving import check_provable

        check_provable(question)
        prepare_file(Path(self.path))

    def of(self, verdict: Verdict, classifier: Classifier) -> Verdict:
        """The verdict with a note on its proof, which is written; as it is if none is wanted."""
        if self.path is None:
            return verdict
        from closecall.proofs.proving import prove

        network = network_asked(classifier, verdict.question)
        return prove(network, verdict, self.path, deployed=self.deployed)
