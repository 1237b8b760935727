"""batch(): many models, many images, one question each; the answers come as they are found."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from closecall.ask.posing import Asked, shape_for
from closecall.batches.answers import Reply
from closecall.batches.choosing import Where, runner_for
from closecall.batches.items import Contender, Pictures, Plan, Task
from closecall.batches.running import Rerun, Watch, run
from closecall.batches.store import Store
from closecall.batches.tables import Row, rows
from closecall.data import load_dataset
from closecall.data.dataset import Split
from closecall.errors import InputError
from closecall.question.effort import Effort
from closecall.question.images import pixels_of
from closecall.question.names import MethodName, SolverName
from closecall.readers import Classifier, read
from closecall.verdict.verdict import Verdict


def batch(
    model: object,
    images: str | Path | ArrayLike,
    labels: Sequence[int] | None = None,
    *,
    indices: Sequence[int] | None = None,
    split: str = "test",
    task: Task = "nearest",
    solver: SolverName = "highs",
    method: MethodName = "auto",
    time_limit: float = Effort.time_limit,
    threads: int = Effort.threads,
    gap: float = Effort.gap,
    input_shape: tuple[int, ...] | None = None,
    store: str | Path | None = None,
    rerun: Rerun = "never",
    workers: int | None = None,
    scheduler: str | None = None,
    **asked: Unpack[Asked],
) -> Batch:
    """Ask the same about many images, and of several models; what is given back is asked when iterated.

    `for verdict in closecall.batch(…)` gives each verdict as it comes; `table()` has a row for each question.
    Answers are kept in the store as they come, so that a batch that was cut off goes on where it was.

    Args:
        model: A model as `nearest` takes it, or several as a list or as {name: model}.
        images: The name or path of a data set, or an array (N, channels, height, width).
        labels: The true classes of an array of images; by default what each model says.
        indices: Which images, counted from 0; by default all.
        split: "test" or "train", of a data set.
        task: "nearest", or "certify" within the radius.
        solver: "highs", "scip", "gurobi" or "cplex", for what is left to a MILP solver.
        method: "auto", "milp", "milp-improved" or "milp-basic".
        time_limit: Seconds for each question.
        threads: Threads of each search.
        gap: The relative gap between distance and lower bound to stop at.
        input_shape: The shape of one image, for a model that leaves it open.
        store: The file that keeps the answers; by default they are kept until the batch is forgotten.
        rerun: Of what the store has: "never" ask again, ask what is "unresolved", or "all".
        workers: Processes on this machine, by default one for each core; 0 asks in this process.
        scheduler: The address or the scheduler file of a Dask cluster, to ask there instead.
        asked: radius, norm, target, cap, margin, ratio, outputs and pixel_range, as `nearest` and `certify`
            take them.
    """
    asked.setdefault("norm", "l1" if task == "nearest" else "linf")
    pictures = pictures_of(images, labels, indices, split)
    plan = Plan(
        contenders_of(model, pictures, input_shape), pictures, task, asked,
        Effort(method, solver, time_limit, threads, gap),
    )  # fmt: skip
    return Batch(plan, None if store is None else Path(store), rerun, Where(workers, scheduler))


@dataclass(eq=False)
class Batch:
    """Questions that are asked when somebody iterates; every answer is in the store before it is given."""

    plan: Plan
    store: Path | None = None
    rerun: Rerun = "never"
    where: Where = field(default_factory=Where)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        if self.store is None:
            folder = Path(tempfile.mkdtemp(prefix="closecall-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self.store = folder / "results.sqlite"

    @property
    def path(self) -> Path:
        """The file that keeps the answers."""
        return cast("Path", self.store)

    def __iter__(self) -> Iterator[Verdict]:
        """Every verdict: first those that the store has, then those that are found now.

        A question that failed, or that crashed its worker, has none; `table()` says why.
        """
        wanted = {item.key for item in self.plan.items()}
        with Store.writing(self.path) as store:
            kept = [key for key, state in store.states().items() if key in wanted and state.finished]
            found = {} if self.rerun == "all" else {key: store.verdict(key) for key in kept}
            given = set()
            for reply in self._run(store):
                if reply.verdict is not None:
                    given.add(reply.key)
                    yield reply.verdict
            yield from (verdict for key, verdict in found.items() if verdict and key not in given)

    def replies(self) -> Generator[Reply, None, None]:
        """Ask what is not answered yet, and give what each question came to."""
        with Store.writing(self.path) as store:
            yield from self._run(store)

    def _run(self, store: Store) -> Iterator[Reply]:
        runner = runner_for(self.plan, self.where)
        return run(self.plan, store, runner, rerun=self.rerun, watch=self.watch)

    def table(self) -> list[Row]:
        """A row of plain values for each question of this batch, answered or not."""
        if not self.path.exists():
            return []
        wanted = {item.key for item in self.plan.items()}
        with Store.reading(self.path) as store:
            return [row for row in rows(store) if row["key"] in wanted]


def pictures_of(
    images: str | Path | ArrayLike,
    labels: Sequence[int] | None = None,
    indices: Sequence[int] | None = None,
    split: str = "test",
) -> Pictures:
    """The images that are asked about: of a data set, or of an array."""
    if isinstance(images, (str, Path)):
        if labels is not None:
            raise InputError("A data set brings its own labels: leave labels out.")
        loaded = load_dataset(str(images), cast("Split", split))
        chosen = checked(range(len(loaded)) if indices is None else indices, len(loaded), str(images))
        known = loaded.labels
        return Pictures(str(images), split, chosen, loaded.class_names, loaded.image, lambda k: int(known[k]))
    pixels = pixels_of(images)
    given = None if labels is None else np.asarray(labels)
    if pixels.ndim < 2 or (given is not None and given.shape != (len(pixels),)):
        raise InputError(
            f"Images are an array (N, channels, height, width) with one label each, not {pixels.shape}"
            + ("." if given is None else f" with labels {given.shape}.")
        )
    chosen = checked(range(len(pixels)) if indices is None else indices, len(pixels), "the array")
    return Pictures(
        "", "", chosen, (), lambda k: pixels[k], lambda k: None if given is None else int(given[k])
    )


def checked(indices: Sequence[int], count: int, where: str) -> tuple[int, ...]:
    """Indices that are all there, each once."""
    chosen = tuple(dict.fromkeys(int(index) for index in indices))
    outside = [index for index in chosen if not 0 <= index < count]
    if not chosen or outside:
        asked = f"image {outside[0]}" if outside else "no image"
        raise InputError(f"{where} has images 0 to {count - 1}, but {asked} was asked for.")
    return chosen


def contenders_of(
    model: object, pictures: Pictures, input_shape: tuple[int, ...] | None = None
) -> tuple[Contender, ...]:
    """Every model under a name of its own."""
    if isinstance(model, Mapping):
        named = {str(name): each for name, each in model.items()}
    else:
        several = model if isinstance(model, (list, tuple)) else [model]
        named = {name_of(each, place): each for place, each in enumerate(several, start=1)}
    if not named:
        raise InputError("A batch needs at least one model.")
    first = pixels_of(pictures.image(pictures.indices[0]))
    return tuple(
        contender(name, each, shape_for(each, first) if input_shape is None else input_shape)
        for name, each in named.items()
    )


def contender(name: str, model: object, shape: tuple[int, ...] | None) -> Contender:
    classifier = model if isinstance(model, Classifier) else read(model, shape)
    classifier.prepare()
    return Contender(name, model, classifier, shape)


def name_of(model: object, place: int) -> str:
    """A path or a name as it is; a module by its type and place."""
    if isinstance(model, Classifier):
        return model.source
    return str(model) if isinstance(model, (str, Path)) else f"{type(model).__name__} {place}"
