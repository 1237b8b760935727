"""A DNN's MILP against a CNN's, image by image, and what may be said about it in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from closecall.compare.results import EncodingRow, MilpAnswer, Results
from closecall.report.numbers import accuracy_digits, count, duration, listed, percent

PAIRINGS = {"accuracy": "matched accuracy", "size": "matched size", "as trained": "as trained"}
FAMILIES = {"dnn": "DNN", "cnn": "CNN"}
QUICKER = 1.1  # times that differ by less are a tie
CHANCE = 0.05  # a lean that chance would bring about more often than this is not called sure
FEWEST = 3  # with fewer solved questions nothing is said


@dataclass(frozen=True)
class Duel:
    """A DNN's and a CNN's MILP on the same images: on how many each was solved sooner, or alone."""

    pairing: str
    dnn: EncodingRow
    cnn: EncodingRow
    digits: int = 1  # of an accuracy in percent, as on the rest of the page

    @property
    def shared(self) -> list[tuple[MilpAnswer, MilpAnswer]]:
        others = {answer.index: answer for answer in self.cnn.answers}
        return [(answer, others[answer.index]) for answer in self.dnn.answers if answer.index in others]

    def wins(self) -> tuple[int, int]:
        """How many shared images the DNN's and the CNN's MILP won; ties belong to neither."""
        sides = [quicker(*pair) for pair in self.shared]
        return sides.count("dnn"), sides.count("cnn")

    @property
    def too_few(self) -> bool:
        return solved_count(self.dnn) + solved_count(self.cnn) < FEWEST

    @property
    def lean(self) -> str:
        """dnn or cnn where its MILP won more often, else nothing."""
        dnn, cnn = self.wins()
        if self.too_few or dnn == cnn:
            return ""
        return "dnn" if dnn > cnn else "cnn"

    @property
    def sure(self) -> bool:
        """Whether a sign test calls the lean more than chance."""
        return bool(self.lean) and sign_test(*self.wins()) <= CHANCE


def duels_of(results: Results) -> list[Duel]:
    """The pairings that have both a DNN and a CNN; of several, the first of each."""
    found = []
    for pairing in PAIRINGS:
        rows = [row for row in results.encodings if row.pairing == pairing]
        dnn = next((row for row in rows if row.family == "dnn"), None)
        cnn = next((row for row in rows if row.family == "cnn"), None)
        if dnn is not None and cnn is not None:
            found.append(Duel(pairing, dnn, cnn, accuracy_digits(results.test_images)))
    return found


def suitable_words(duels: Sequence[Duel]) -> list[str]:
    """What the pairings come to, then each of them; nothing that the numbers do not show."""
    if not duels:
        return ["There is no pair of a DNN and a CNN to compare."]
    return [conclusion(duels), *(pairing_words(duel) for duel in duels)]


def pairing_words(duel: Duel) -> str:
    dnn, cnn = duel.dnn, duel.cnn
    return (
        f"{heading_words(duel)} the DNN's MILP has {count(dnn.variables)} variables, "
        f"{count(dnn.binaries)} of them binary, and {count(dnn.rows)} rows; the CNN's has "
        f"{count(cnn.variables)}, {count(cnn.binaries)} and {count(cnn.rows)}. Of the DNN's questions "
        f"{effort_words(dnn)}; of the CNN's {effort_words(cnn)}. {verdict_words(duel)}"
    )


def heading_words(duel: Duel) -> str:
    dnn, cnn = duel.dnn, duel.cnn
    accuracies = f"{percent(dnn.accuracy, duel.digits)} and {percent(cnn.accuracy, duel.digits)}"
    if duel.pairing == "accuracy":
        matched = [percent(compared_accuracy(row), duel.digits) for row in (dnn, cnn)]
        return f"At matched accuracy ({listed(matched)}, {matched_words(dnn)}),"
    if duel.pairing == "size":
        return (
            f"At matched size, by {dnn.matched_by or 'units'} ({count(dnn.units)} and {count(cnn.units)} "
            f"units, {count(dnn.parameters)} and {count(cnn.parameters)} parameters, accuracy {accuracies}),"
        )
    return (
        f"As trained for this comparison ({count(dnn.units)} and {count(cnn.units)} units, accuracy "
        f"{accuracies}),"
    )


def matched_words(row: EncodingRow) -> str:
    """What was held equal, as the rest of the page calls it."""
    return row.matched_by.replace("validation", "held-out") or "test accuracy"


def compared_accuracy(row: EncodingRow) -> float:
    """The accuracy that the pair was matched by."""
    return row.accuracy if row.validation_accuracy is None else row.validation_accuracy


def verdict_words(duel: Duel) -> str:
    """Who won on how many of the shared images, and how much that says."""
    if duel.too_few:
        return "Too few were solved to tell which is the more suitable."
    dnn, cnn = duel.wins()
    shared, ties = len(duel.shared), len(duel.shared) - dnn - cnn
    tied = f", {ties} tied" if ties else ""
    tally = f"of {shared} shared images the DNN's was solved sooner on {dnn} and the CNN's on {cnn}{tied}"
    if not duel.lean:
        return f"It is a tie: {tally}."
    name = FAMILIES[duel.lean]
    if duel.sure:
        return f"The {name}'s is the more suitable here: {tally}."
    return f"It leans to the {name}'s: {tally}; that is too few to rule out chance."


def conclusion(duels: Sequence[Duel]) -> str:
    """One sentence over the matched pairings, or over what there is."""
    matched = [duel for duel in duels if duel.pairing != "as trained"] or list(duels)
    leaning = [duel for duel in matched if duel.lean]
    if not leaning:
        return f"In all: {ways(matched)}, the numbers do not tell the two MILPs apart."
    families = listed([f"the {FAMILIES[duel.lean]}'s {ways([duel])}" for duel in leaning])
    if len({duel.lean for duel in leaning}) > 1:
        return f"In all, it depends on what is held equal: {families}{doubt(leaning)}."
    name = FAMILIES[leaning[0].lean]
    if len(leaning) < len(matched):
        said = (
            "tell the two MILPs apart, in favour of"
            if leaning[0].sure
            else "lean to a side, without being sure:"
        )
        return f"In all: only {ways(leaning)} do the numbers {said} the {name}'s."
    if all(duel.sure for duel in leaning):
        return (
            f"In all: {ways(matched)}, the {name}'s MILP is the more suitable for these networks and images."
        )
    return f"In all: {ways(matched)}, the {name}'s MILP looks the more suitable{doubt(leaning)}."


def ways(duels: Sequence[Duel]) -> str:
    names = [PAIRINGS[duel.pairing] for duel in duels]
    return listed([name if name == "as trained" else f"at {name}" for name in names])


def doubt(leaning: Sequence[Duel]) -> str:
    unsure = [duel for duel in leaning if not duel.sure]
    return f", though {ways(unsure)} on too few images to be sure" if unsure else ""


def quicker(dnn: MilpAnswer, cnn: MilpAnswer) -> str:
    """The side that was solved alone, or clearly sooner; else nothing."""
    if dnn.solved != cnn.solved:
        return "dnn" if dnn.solved else "cnn"
    if not dnn.solved or max(dnn.seconds, cnn.seconds) <= QUICKER * min(dnn.seconds, cnn.seconds):
        return ""
    return "dnn" if dnn.seconds < cnn.seconds else "cnn"


def sign_test(one: int, other: int) -> float:
    """How likely a split at least this uneven is if both sides were equally good (two-sided)."""
    trials = one + other
    tail = sum(math.comb(trials, k) for k in range(min(one, other) + 1)) * 0.5**trials
    return min(1.0, 2 * tail)


def solved_count(row: EncodingRow) -> int:
    return sum(answer.solved for answer in row.answers)


def solved_words(row: EncodingRow) -> str:
    return f"{solved_count(row)} of {len(row.answers)}"


def effort_words(row: EncodingRow) -> str:
    nodes = "node" if row.nodes == 1 else "nodes"
    median = f"{duration(row.seconds)} and {count(row.nodes)} {nodes}"
    return f"{solved_words(row)} were solved, at a median of {median}"
