"""The distances of one model as a batch in this process: one at a time, so that their times compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from closecall.batches.answers import Reply
from closecall.batches.batch import Batch
from closecall.batches.choosing import Where
from closecall.batches.items import Contender, Item, Pictures, Plan
from closecall.batches.running import Nobody
from closecall.compare.comparison import Comparison
from closecall.errors import ClosecallError
from closecall.milp import OnProgress
from closecall.question.effort import Effort
from closecall.readers import Classifier
from closecall.verdict.verdict import Verdict

STORE = "distances.sqlite"


class Shown(Nobody):
    """Passes intervals on to whoever shows them."""

    report: OnProgress | None = None

    def improves(self, item: Item, lower: float, upper: float, nodes: int, seconds: float) -> None:
        if self.report is not None:
            self.report(lower, upper, nodes, seconds)


class Asked:
    """A batch that goes on when the next answer is wanted; every answer is kept in its store."""

    def __init__(self, plan: Plan, shown: Shown, replies: Iterator[Reply]) -> None:
        self.keys = {item.place.index: item.key for item in plan.items()}
        self.shown, self.replies = shown, replies
        self.found: dict[str, Reply] = {}

    def verdict(self, index: int, report: OnProgress) -> Verdict:
        """What is found about one image."""
        self.shown.report = report
        key = self.keys[index]
        while key not in self.found:
            reply = next(self.replies)
            if not reply.finished:
                raise KeyboardInterrupt
            self.found[reply.key] = reply
        verdict = self.found[key].verdict
        if verdict is None:
            raise ClosecallError(self.found[key].note)
        return verdict


@contextmanager
def asking(
    comparison: Comparison, name: str, classifier: Classifier, indices: Sequence[int]
) -> Iterator[Asked]:
    """Ask one model for the nearest image to each of some test images.

    What is measured anew is asked anew: the comparison's own record says what is known.
    """
    test = comparison.test
    labels = test.labels.tolist()
    pictures = Pictures(
        comparison.dataset, "test", tuple(indices), test.class_names, test.image, labels.__getitem__
    )
    effort = Effort(time_limit=comparison.preset.time_limit, threads=comparison.threads)
    contender = Contender(name, classifier.source, classifier)
    plan = Plan([contender], pictures, "nearest", {"norm": comparison.norm}, effort)
    shown = Shown()
    batch = Batch(plan, comparison.folder / STORE, "all", Where(workers=0), shown)
    with closing(batch.replies()) as replies:
        yield Asked(plan, shown, replies)
