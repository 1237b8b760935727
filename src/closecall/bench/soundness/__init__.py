"""`closecall bench soundness`: thousands of liars, and whether anybody was taken in.

A liar is a small network whose nearest adversarial is known by construction, in a disguise that leaves its
function as it is. Every method must give an interval that holds the known distance; nobody may call a planted
adversarial away.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import cast

from closecall.bench.soundness.asking import NORMS, hear
from closecall.bench.soundness.liars import liar
from closecall.clock import usable_cores
from closecall.files import append_line, prepare_folder, whole_lines
from closecall.question.names import NormName, SolverName
from closecall.solvers import available

RECORD = "soundness.jsonl"
LIARS = {"quick": 300, "full": 10_000}
BLOCK = 50
MOST_CRASHES = 5  # of a whole run; SCIP crashes about once in ten thousand questions
IN_TURN = (*NORMS, *(norm for norm in NORMS if norm != "l2"))


@dataclass(frozen=True)
class Block:
    """What came of some liars in a row: how much was said of them, and every lie."""

    first: int
    liars: int
    planted: int
    claims: int
    closed: int
    refused: int
    lies: tuple[str, ...]


def questions_of(seed: int, solvers: Sequence[SolverName]) -> tuple[NormName, tuple[SolverName, ...]]:
    """The norm of a liar, and the solver beside HiGHS, both in turn; L2, which takes long, less often."""
    others = [solver for solver in solvers if solver != "highs"]
    turn = seed // len(IN_TURN)
    return IN_TURN[seed % len(IN_TURN)], (others[turn % len(others)],) if others else ()


def hear_block(first: int, count: int, solvers: Sequence[SolverName]) -> Block:
    """Put the questions about so many liars."""
    planted = claims = closed = refused = 0
    lies: list[str] = []
    for seed in range(first, first + count):
        suspect = liar(seed)
        heard = hear(suspect, *questions_of(seed, solvers))
        planted += suspect.truth.planted
        claims, closed = claims + len(heard.claims), closed + heard.closed
        refused += len(heard.refused)
        lies += heard.lies
    return Block(first, count, planted, claims, closed, refused, tuple(lies))


def hear_all(liars: int, out: Path, say: Callable[[str], None], *, at_once: int = BLOCK) -> Block:
    """Hear so many liars; what is known is kept, what a crashing solver takes down with it is asked again."""
    prepare_folder(out)
    record = out / RECORD
    firsts = range(0, liars, at_once)
    for crashes in range(MOST_CRASHES + 1):
        known = {block.first for block in recorded(record)}
        try:
            hear_missing([first for first in firsts if first not in known], at_once, record, say)
            break
        except BrokenProcessPool:
            if crashes == MOST_CRASHES:
                raise
            say("A process died, as they do when a solver crashes: what is left is asked again.")
    blocks = {block.first: block for block in recorded(record)}
    return total([blocks[first] for first in firsts])


def hear_missing(missing: Sequence[int], at_once: int, record: Path, say: Callable[[str], None]) -> None:
    """Hear blocks of liars, two processes a core, since who asks a solver mostly waits."""
    solvers = cast("tuple[SolverName, ...]", available())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        2 * usable_cores(), mp_context=context, initializer=leave_ctrl_c_to_the_parent
    ) as pool:
        running = [pool.submit(hear_block, first, at_once, solvers) for first in missing]
        try:
            for done, future in enumerate(as_completed(running), start=1):
                block = future.result()
                append_line(record, json.dumps(asdict(block), ensure_ascii=False))
                last = block.first + at_once - 1
                say(f"{done}/{len(missing)} liars {block.first} to {last}: {sentence(block)}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def recorded(record: Path) -> list[Block]:
    if not record.exists():
        return []
    known = {field.name for field in fields(Block)}
    lines = (json.loads(line) for line in whole_lines(record))
    return [Block(**{**line, "lies": tuple(line["lies"])}) for line in lines if set(line) == known]


def total(blocks: Sequence[Block]) -> Block:
    return Block(
        0,
        sum(block.liars for block in blocks),
        sum(block.planted for block in blocks),
        sum(block.claims for block in blocks),
        sum(block.closed for block in blocks),
        sum(block.refused for block in blocks),
        tuple(lie for block in blocks for lie in block.lies),
    )


def sentence(block: Block) -> str:
    return (
        f"{block.claims:,} intervals, {block.closed:,} of them closed, {block.refused:,} refusals, "
        f"{len(block.lies):,} false"
    )
