"""A batch from the first question to the last: what the store knows is not asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from closecall.batches.answers import Reply
from closecall.batches.asking import OnInterval, StoppableClock, ask
from closecall.batches.items import Item, Plan
from closecall.batches.stopping import Stop
from closecall.batches.store import State, Store
from closecall.batches.together import settle_easy, suits
from closecall.errors import InputError
from closecall.question.effort import Effort
from closecall.readers import Classifier

Rerun = Literal["never", "unresolved", "all"]
RERUNS: tuple[Rerun, ...] = ("never", "unresolved", "all")


class Runner(Protocol):
    """Asks questions somewhere, several at a time where it can, and gives the answers as they come."""

    def __call__(self, items: Sequence[Item], tell: OnInterval, stop: Stop) -> Iterator[Reply]: ...


class Watch(Protocol):
    """Is told what a batch does, as it does it."""

    def begins(self, total: int, known: int) -> None:
        """So many questions, of which so many are answered already."""

    def improves(self, item: Item, lower: float, upper: float, nodes: int, seconds: float) -> None:
        """A running search has proven more."""

    def ends(self, item: Item, reply: Reply) -> None:
        """A question is answered, and the answer kept."""


class Nobody:
    """Watches nothing."""

    def begins(self, total: int, known: int) -> None: ...

    def improves(self, item: Item, lower: float, upper: float, nodes: int, seconds: float) -> None: ...

    def ends(self, item: Item, reply: Reply) -> None: ...


@dataclass(frozen=True, eq=False)
class Alone:
    """Asks one question after the other in this process."""

    classifiers: dict[str, Classifier]
    effort: Effort

    def __call__(self, items: Sequence[Item], tell: OnInterval, stop: Stop) -> Iterator[Reply]:
        for item in items:
            if stop.pressed:
                return
            clock = StoppableClock(self.effort.time_limit)
            try:
                with stop.raising():
                    reply = ask(self.classifiers[item.network], item, self.effort, clock, tell)
            except KeyboardInterrupt:
                return
            yield reply


def run(
    plan: Plan, store: Store, runner: Runner, *, rerun: Rerun = "never", watch: Watch | None = None
) -> Iterator[Reply]:
    """Ask what is not answered yet, keep each answer, then give it.

    The first Ctrl-C ends running searches with what they have proven; when that is kept, KeyboardInterrupt
    is raised.
    """
    if rerun not in RERUNS:
        raise InputError(f"--rerun takes {', '.join(RERUNS)}, not {rerun!r}.")
    watch = watch or Nobody()
    listed = [*plan.items()]
    items = {item.key: item for item in listed}  # the same image in two places is asked about once
    store.add_contenders(plan.contenders, plan.pictures.dataset, plan.pictures.class_names)
    store.add_questions(listed)
    states = store.states()
    wanted = {key: item for key, item in items.items() if is_wanted(states.get(key), rerun)}
    watch.begins(len(items), len(items) - len(wanted))
    stop = Stop()

    def tell(key: str, lower: float, upper: float, nodes: int, seconds: float) -> None:
        store.note_interval(key, lower, upper, nodes, seconds)
        watch.improves(wanted[key], lower, upper, nodes, seconds)

    with stop.heeded():
        for reply in replies(plan, wanted, runner, tell, stop):
            store.put(reply, plan.task)
            watch.ends(wanted[reply.key], reply)
            yield reply
    if stop.pressed:
        raise KeyboardInterrupt


def replies(
    plan: Plan, wanted: dict[str, Item], runner: Runner, tell: OnInterval, stop: Stop
) -> Iterator[Reply]:
    """Easy ones together first; the runner has the rest."""
    left = dict(wanted)
    for contender in plan.contenders:
        mine = [item for item in left.values() if item.network == contender.fingerprint]
        if mine and suits(mine[0], plan.effort):
            for reply in settle_easy(contender.classifier, mine, plan.effort, stop):
                del left[reply.key]
                yield reply
    if left and not stop.pressed:
        yield from runner([*left.values()], tell, stop)


def is_wanted(state: State | None, rerun: Rerun) -> bool:
    """Whether a question is to be asked (again); one that Ctrl-C cut short was not really asked."""
    if state is None or rerun == "all" or not state.finished:
        return True
    return rerun == "unresolved" and not state.resolved
