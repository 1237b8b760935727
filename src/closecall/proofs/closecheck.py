"""closecheck: check a proof that closecall wrote, with nothing but Python, in exact arithmetic.

    python closecheck.py proof.ccp

A proof says of one network, one image c and one goal: no image v of the box with ‖v − c‖ ≤ r reaches the
goal. All numbers are binary fractions n·2^−e, held as whole numbers n with an exponent e: nothing is rounded
but where this text says so, nothing is compared with a tolerance, no floating-point operation decides. The
file may be anybody's: each step below holds for whatever it proposes, or the file is refused.

THE NETWORK is a list of nodes; node 0 is the image. A node is affine, Σ W_k·x_k + b, or it chooses: each of
its units is y = max(e_1 … e_k) over entries of one earlier node. A ReLU chooses from its input and 0.

THE DOMAIN is D = { c + p − m : 0 ≤ p ≤ up, 0 ≤ m ≤ down, ‖p + m‖ ≤ r }. Every image of the box within r is
there, with p its rises and m its falls.

THEOREM 1 (ranges). If l ≤ x ≤ u, then Σ W·x + b lies between the sums that take, weight by weight, l or u by
its sign; max(e) lies between the largest l and the largest u. Ranges are rounded outward to 32 bits. An entry
whose u is at most the largest l of its window is not needed for the maximum; it is dropped. A window of which
one entry is left *is* that entry. (`Checker.add_ranges`, `Checker.lay_out`)

THEOREM 2 (planes). Let j be the entry of largest u, u' the largest u of the other entries. For any slope s
    y ≤ max(e_j, u') ≤ s·e_j + max( max(l_j, u') − s·l_j,  u_j − s·u_j ) :
a convex function of e_j lies below a line wherever it does so at both ends. And y ≥ any entry, hence any
average of entries. (`Choice`)

THEOREM 3 (leads, L1 alone). Let entry w win at the original, and let e_j − e_w ≤ K + B·(p, m) on D for
another one, K ≤ 0. Since Σ (p + m) ≤ r, K ≤ (K/r)·Σ (p + m), so e_j − e_w ≤ Σ (B + K/r)·(p, m), and
    y − e_w ≤ Σ max(0, B + K/r)·(p, m),   the largest over j where there are several.
These rises are rounded up. (`Checker.lead`)

THEOREM 4 (cuts of a ReLU y = max(0, a)). Let f = a beside the entry e = 0, or f = −a beside e = a, so that
y = e + max(0, f), f = b + Σ w·x. Some terms of f are late, one is crossing, the others are early. Let T be b
plus the largest of each early term and the least of the others, and T ≤ 0. A late term less its least is not
negative, so max(0, f) ≤ max(0, T + w_c·x_c − least_c) + Σ_late (w·x − least). The first is convex in x_c and
0 at one end of its range: it lies below the line to the other end, whose slope is rounded up.
(`Checker.add_cut`)

THEOREM 5 (one pass backward). Let c·x be a linear function of some node, and T a path of splits, each of
which says that one entry of a unit is its maximum. To bound c·x on the part of D where T holds, replace, from
the last node to the first: an affine node by what it is; a decided unit by its entry; a split unit by its
winner e_w; an open unit with c > 0 by a share of its plane and the rest of its lead, with c < 0 by an average
of its entries. To this β·(e_w − e_j), β·(plane − e_j), β·(lead − e_j) and β·(cut − y) may be added for any
β ≥ 0 and any entry e_j of a unit: none of them is negative there. Each step can only raise the value. What is
left is a constant and a linear function of p and m, whose largest value on D is
    in L∞  Σ max(0, gain)·min(room, r);   in L1  largest gains first, each up to its room, till r is spent.
Without splits this bounds a unit on all of D: so its range is tightened. (`Checker.backward`, `Domain.most`)

THEOREM 6 (a leaf). A case of the goal says C·y ≥ d for the scores y. If for some λ ≥ 0 the bound of theorem 5
on λ·C·y is smaller than λ·d, no image of D on this path reaches the case. (`Checker.leaf`)

THEOREM 7 (a tree). At a split of y = max(e_1 … e_k) each image has some e_j that is the maximum, and goes to
the j-th child. So if all leaves of a tree are closed, no image of D reaches its case; and if that holds for
each case, none reaches the goal. Cases and box are made here from the question. (`Checker.tree`, `cases_of`)

THE WITNESS is run through the network exactly: it lies in the box, and its class is one that is asked for.

THEOREM 8 (the network as deployed, if the file claims it). Let weights, pixels and sums be in float32,
u = 2^−24, sums in any order, fused or not. A sum of n products w·x of numbers off by at most E is off by
    Σ|w|·E + γ·(Σ|w|·(|x| + E) + |b|) + n·2^−148,   γ = 2·(n + 3)·u,
at most, as long as (n + 3)·u ≤ 1/2 and nothing overflows; a maximum is off by no more than its entries. Each
threshold is lowered by what its scores may be off together. (`Checker.lower_thresholds`)

WHAT IS TRUSTED: Python's whole numbers, zlib and this file; and that the network in the file is the one that
is meant, which `closecall check --model` compares.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
import zlib
from array import array
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb, isfinite, prod
from typing import Any, NamedTuple

VERSION = 1
MOST_BYTES, MOST_LINE, MOST_UNITS, MOST_CASES, MOST_DEPTH = 2**32, 2**25, 10**7, 10**4, 10**4
SLOPE_BITS, RANGE_BITS, RISE_BITS = 16, 32, 24
SHARE_BITS = {"B": 7, "H": 15, "I": 31}
UNREADABLE = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError, TypeError)
Ints = list[int]
Key = tuple[int, int]


class Refused(Exception):  # noqa: N818
    """Why a proof is not one."""


def need(condition: object, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def lines_of(path: str) -> Iterator[Any]:
    """The lines of a compressed file as JSON, one at a time and within limits."""
    unzip, rest, total = zlib.decompressobj(31), b"", 0
    with open(path, "rb") as file:
        while not unzip.eof:
            raw = unzip.unconsumed_tail or file.read(2**16)
            need(raw, "the file ends in the middle")
            text = unzip.decompress(raw, 2**20)
            total += len(text)
            need(total <= MOST_BYTES, f"the file unpacks to more than {MOST_BYTES} bytes")
            *lines, rest = (rest + text).split(b"\n")
            need(len(rest) <= MOST_LINE, f"a line is longer than {MOST_LINE} bytes")
            yield from map(json.loads, lines)
        need(not (rest or unzip.unused_data or file.read(1)), "something follows the end")


def numbers(text: str, kind: str) -> array[Any]:
    """Numbers in base64, little end first: f and d floats of 4 and 8 bytes, B, H, I and i whole numbers."""
    found: array[Any] = array(kind, b"")
    found.frombytes(base64.b64decode(text, validate=True))
    if sys.byteorder == "big":
        found.byteswap()
    need(kind not in "fd" or all(map(isfinite, found)), "a number is NaN or infinite")
    return found


def whole(value: Any, most: int = MOST_UNITS, least: int = 0) -> int:
    need(type(value) is int and least <= value <= most, f"{value!r:.40} is no whole number up to {most}")
    return int(value)


def exact(value: Any) -> Fraction:
    need(type(value) in (int, float) and isfinite(value), f"{value!r:.40} is no finite number")
    return Fraction(value)


def as_ints(values: Any) -> tuple[Ints, int]:
    """Floats, or fractions over powers of two, as n·2^−exponent with one exponent."""
    ratios = [value.as_integer_ratio() for value in values]
    exponent = max((below.bit_length() - 1 for _, below in ratios), default=0)
    return [above << exponent + 1 - below.bit_length() for above, below in ratios], exponent


def aligned(values: Ints, exponent: int, wanted: int) -> Ints:
    return values if wanted == exponent else [value << wanted - exponent for value in values]


def fraction(value: int, exponent: int) -> Fraction:
    return Fraction(value, 1 << exponent)


def outward(value: int, bits: int, *, up: bool) -> int:
    """Rounded to so many bits, up or down."""
    spare = max(0, abs(value).bit_length() - bits)
    return -(-value >> spare << spare) if up else value >> spare << spare


# ---------------------------------------------------------------------------------------------- the network


class Affine:
    """A bias, and for each input its rows: the columns that they read and whole numbers of one exponent."""

    def __init__(self, given: Any, sizes: Ints) -> None:
        self.inputs = tuple(whole(source, len(sizes) - 1) for source in given["affine"])
        self.bias, self.bias_exponent = as_ints(numbers(given["bias"], "d"))
        self.size = len(self.bias)
        need(len(given["weights"]) == len(self.inputs) > 0 < len(self.bias), "an affine node lacks something")
        self.weights = [
            self.rows_of(*each) for each in zip(given["weights"], (sizes[s] for s in self.inputs))
        ]

    def rows_of(self, weight: Any, width: int) -> tuple[list[tuple[Ints, Ints]], int]:
        counts, steps = numbers(weight["counts"], "I"), numbers(weight["steps"], "i")
        values, exponent = as_ints(numbers(weight["values"], {"f": "f", "d": "d"}[weight["kind"]]))
        need(len(counts) == len(self.bias), "a matrix has another number of rows than its node")
        need(sum(counts) == len(steps) == len(values), "a matrix has other numbers than places")
        need(min(steps, default=1) > 0, "the columns of a row are in order")
        rows: list[tuple[Ints, Ints]] = []
        place = 0
        for count in counts:
            column, columns = -1, []
            for step in steps[place : place + count]:
                column += step
                columns.append(column)
            need(column < width, "a matrix reads what is not there")
            rows.append((columns, values[place : place + count]))
            place += count
        return rows, exponent

    def sums(self, up: list[Ints], down: list[Ints], exponents: Ints) -> tuple[Ints, int]:
        """Σ W·x + b, where positive weights read from one list, negative ones from another."""
        parts = [exponents[source] + more for source, (_, more) in zip(self.inputs, self.weights)]
        exponent = max(self.bias_exponent, *parts)
        total = aligned(self.bias, self.bias_exponent, exponent)
        for source, (rows, _), part in zip(self.inputs, self.weights, parts):
            plus, minus = up[source], down[source]
            total = [
                so_far + (sum(w * (plus[j] if w > 0 else minus[j]) for j, w in zip(*row)) << exponent - part)
                for so_far, row in zip(total, rows)
            ]
        return total, exponent


class Choosing:
    """Units that are each the largest of some entries of one node; the entry −1 is the number 0."""

    def __init__(self, given: Any, sizes: Ints) -> None:
        relu = "relu" in given
        self.inputs = (whole(given["relu" if relu else "maximum"], len(sizes) - 1),)
        most = sizes[self.inputs[0]] - 1
        if relu:
            self.windows = [[unit, -1] for unit in range(most + 1)]
        else:
            width, entries = whole(given["width"], least=1), numbers(given["windows"], "i").tolist()
            padded = [entries[start : start + width] for start in range(0, len(entries), width)]
            self.windows = [[whole(entry, most) for entry in window if entry != -1] for window in padded]
        need(self.windows and all(self.windows), "a window is empty")
        self.size = len(self.windows)

    def largest(self, values: Ints) -> Ints:
        read = [*values, 0]  # the last one is the entry −1
        return [max(read[entry] for entry in window) for window in self.windows]


# ---------------------------------------------------------------------------------------------- the question


class Domain:
    """The image, its box, and the rises and falls within box and ball, in whole numbers of one exponent."""

    def __init__(self, asked: Any, size: int) -> None:
        self.norm, self.image = asked["norm"], numbers(asked["image"], "f")
        need(self.norm in ("l1", "linf"), "the norm is neither l1 nor linf")
        need(len(self.image) == size, "the image has another size than the network takes")
        low, high = map(exact, asked["pixel_range"])
        cap, self.radius = (None if asked[key] is None else exact(asked[key]) for key in ("cap", "radius"))
        reach = [most for most in (cap, self.radius) if most is not None]
        need(all(most > 0 for most in reach), "the cap and the radius are positive")
        self.box: list[tuple[Fraction, Fraction]] = []
        for pixel, free in zip(self.image, mask_of(asked["mask"], size)):
            x = Fraction(pixel)
            ends = (low, high) if cap is None else (max(low, x - cap), min(high, x + cap))
            self.box.append(ends if free else (x, x))
            need(self.box[-1][0] <= x <= self.box[-1][1], "the image lies outside of its box")
        ups = [min([high - x, *reach]) for x, (_, high) in zip(map(Fraction, self.image), self.box)]
        downs = [min([x - low, *reach]) for x, (low, _) in zip(map(Fraction, self.image), self.box)]
        ints, self.exponent = as_ints([*self.image, *ups, *downs, self.radius or 0])
        self.centre, self.up, self.down, self.spend = (
            ints[:size],
            ints[size : -size - 1],
            ints[-size - 1 : -1],
            ints[-1],
        )

    def most(self, row: Ints, rises: dict[int, int]) -> int:
        """The largest row·(c + p − m) + rises·(p, m), of the exponent of the row and the domain's."""
        at_centre = sum(map(int.__mul__, row, self.centre))
        if self.norm == "l1" and self.radius is not None:
            return at_centre + self.most_in_l1(row, rises)
        rooms = [(g, self.up[i]) if g > 0 else (-g, self.down[i]) for i, g in enumerate(row) if g]
        return at_centre + sum(g * room for g, room in rooms)

    def most_in_l1(self, row: Ints, rises: dict[int, int]) -> int:
        ways = [(g + rises.get(2 * i, 0), self.up[i]) for i, g in enumerate(row)]
        ways += [(rises.get(2 * i + 1, 0) - g, self.down[i]) for i, g in enumerate(row)]
        total, left = 0, self.spend
        for gain, room in sorted((way for way in ways if way[0] > 0), reverse=True):
            total += gain * min(room, left)
            left -= min(room, left)
        return total

    def distance(self, point: Any) -> Fraction:
        moved = [abs(Fraction(new) - Fraction(old)) for new, old in zip(point, self.image)]
        return max(moved) if self.norm == "linf" else sum(moved, Fraction(0))


def mask_of(text: str | None, size: int) -> list[bool]:
    """Which pixels may change: all, or those in ranges such as 0:3,7:8."""
    free = [text is None] * size
    for part in () if text is None else text.split(","):
        first, last = (whole(int(end), size) for end in part.split(":"))
        free[first:last] = [True] * (last - first)
    return free


Case = list[tuple[dict[int, Fraction], Fraction]]


def cases_of(asked: Any, classes: int) -> list[Case]:
    """The goal: cases of rows {class: coefficient} with thresholds, one of which must be reached.

    t beats j: y_t ≥ factor·y_j + lead; and y_t ≥ least, if that is asked for. Any other class: some t beats
    the label. Targets: one of them beats all classes that are none. Out of the top k: some k beat the label.
    """
    label, lead, factor = whole(asked["label"], classes - 1), exact(asked["lead"]), exact(asked["factor"])
    targets, top = asked["targets"], asked["out_of_top"]
    others = [t for t in range(classes) if t != label]

    def beats(winner: int, rivals: Ints) -> Case:
        rows = [({winner: Fraction(1), rival: -factor}, lead) for rival in rivals]
        return rows if asked["least"] is None else [*rows, ({winner: Fraction(1)}, exact(asked["least"]))]

    choices = classes if top is None else comb(classes, whole(top, classes))
    need(max(classes, choices) <= MOST_CASES, "the goal has too many cases")
    if top is not None:
        return [[row for t in some for row in beats(t, [label])] for some in combinations(others, top)]
    if targets is None:
        return [beats(t, [label]) for t in others]
    need(label not in targets, "the label is no target")
    return [beats(whole(t, classes - 1), [j for j in range(classes) if j not in targets]) for t in targets]


class Choice:
    """An open unit: its entries, its plane above them (theorem 2), and its lead (theorem 3)."""

    def __init__(self, entries: Ints, low: Ints, high: Ints) -> None:
        self.entries, self.low, self.high = entries, low, high
        top = high.index(max(high))
        below, above, other = low[top], high[top], max(high[:top] + high[top + 1 :])
        floor, self.top = max(below, other), entries[top]
        self.slope = ((above - floor) << SLOPE_BITS) // (above - below) if above > below else 0
        self.height = max(
            (end << SLOPE_BITS) - self.slope * at for end, at in ((floor, below), (above, above))
        )
        middles = [low[j] + high[j] for j in range(len(entries))]
        self.middle = self.leader = middles.index(max(middles))
        self.rises: list[Key] = []
        self.rise_exponent = 0


class Cut(NamedTuple):
    """A unit is at most an entry + Σ coefficients · 2^−exponent · values of earlier nodes + a constant."""

    key: Key
    entry: int
    terms: dict[int, list[Key]]
    exponent: int
    constant: Fraction


class Plan:
    """By what each open unit is replaced: by one rule for all, or by shares that a file gives."""

    def __init__(self, rule: str, splits: Any = (), added: Any = (), scale: int = 0) -> None:
        self.rule, self.splits, self.added, self.scale = rule, dict(splits), added, scale
        self.bits, self.shares = 0, dict[Key, Ints]()
        self.cuts: list[tuple[Cut, int]] = []

    def parts(self, key: Key, choice: Choice) -> Ints:
        """Shares of the entries; the first is that of the lead above, too."""
        if key in self.shares:
            return [*self.shares[key], (1 << self.bits) - sum(self.shares[key])]
        chosen = choice.leader if self.rule == "lead" else choice.middle
        return [(1 << self.bits) * (j == chosen) for j in range(len(choice.entries))]

    def led(self, key: Key) -> int:
        return self.shares[key][0] if key in self.shares else (1 << self.bits) * (self.rule == "lead")


class Linear:
    """row·v + rises·(p, m) + constant, the first two in whole numbers of one exponent."""

    def __init__(
        self, row: Ints, exponent: int, rises: dict[int, dict[int, int]], constant: Fraction
    ) -> None:
        self.exponent, self.constant = max([exponent, *rises]), constant
        self.row, self.rises = aligned(row, exponent, self.exponent), dict[int, int]()
        for its, mine in rises.items():
            for way, rise in mine.items():
                self.rises[way] = self.rises.get(way, 0) + (rise << self.exponent - its)

    def bound(self, domain: Domain) -> Fraction:
        return self.constant + fraction(domain.most(self.row, self.rises), self.exponent + domain.exponent)


# ---------------------------------------------------------------------------------------------- checking


class Checker:
    """A network, a question, and all that was derived so far."""

    def __init__(self, header: Any, seconds: float | None = None) -> None:
        need(header["closecall proof"] == VERSION, f"this is no proof of version {VERSION}")
        self.until = None if seconds is None else time.monotonic() + seconds
        self.shape = tuple(whole(side, least=1) for side in header["input_shape"])
        self.nodes: list[Any] = [None]
        self.sizes, self.count = [whole(prod(self.shape), least=1)], whole(header["nodes"], least=1)
        self.digest, self.claimed = hashlib.sha256(repr(self.shape).encode()), header["network"]
        self.low, self.high, self.exponents = [[0]], [[0]], [0]
        self.units: dict[int, list[Any]] = {}
        self.order: list[Key] = []
        self.cuts: list[Cut] = []
        self.leaves = 0

    def in_time(self) -> None:
        need(self.until is None or time.monotonic() < self.until, "there was not enough time")

    def add_node(self, given: Any) -> None:
        node = Affine(given, self.sizes) if "affine" in given else Choosing(given, self.sizes)
        self.digest.update(json.dumps(given, sort_keys=True).encode())
        self.nodes.append(node)
        self.sizes.append(node.size)
        need(sum(self.sizes) <= MOST_UNITS, f"the network has more than {MOST_UNITS} units")

    def ask(self, asked: Any) -> None:
        need(self.digest.hexdigest() == self.claimed, "the network is another one than its fingerprint says")
        self.asked, self.domain = asked, Domain(asked, self.sizes[0])
        self.cases, domain = cases_of(asked, self.sizes[-1]), self.domain
        need(self.cases, "there is nothing that the image could be changed to")
        self.has_leads = domain.norm == "l1" and domain.radius is not None
        self.values, _ = self.run(domain.image)
        self.low[0] = [x - down for x, down in zip(domain.centre, domain.down)]
        self.high[0] = [x + up for x, up in zip(domain.centre, domain.up)]
        self.exponents[0] = domain.exponent

    def run(self, image: Any) -> tuple[list[Ints], Ints]:
        """The exact value of every node."""
        first, exponent = as_ints(image)
        values, exponents = [first], [exponent]
        for node in self.nodes[1:]:
            self.in_time()
            if isinstance(node, Affine):
                value, exponent = node.sums(values, values, exponents)
            else:
                value, exponent = node.largest(values[node.inputs[0]]), exponents[node.inputs[0]]
            values.append(value)
            exponents.append(exponent)
        return values, exponents

    def check_witness(self) -> tuple[Fraction, Fraction]:
        """Its distance, and by how much it reaches its best case."""
        point = numbers(self.asked["witness"], "f")
        need(len(point) == self.sizes[0], "the witness has another size than the image")
        inside = all(low <= Fraction(x) <= high for x, (low, high) in zip(point, self.domain.box))
        need(inside, "the witness lies outside of the box")
        values, exponents = self.run(point)
        scores = [fraction(value, exponents[-1]) for value in values[-1]]
        ahead = [
            [(sum(c * scores[t] for t, c in row.items()), least) for row, least in case]
            for case in self.cases
        ]
        won = any(all(lead > 0 for lead, _ in case) for case in ahead)
        need(won, "the witness does not change the verdict")
        return self.domain.distance(point), max(min(lead - least for lead, least in case) for case in ahead)

    # -- theorems 1 to 4

    def add_ranges(self, given: Any) -> None:
        """The ranges of the next node; some of its units are tightened by rules."""
        self.in_time()
        index = len(self.low)
        node = self.nodes[index]
        if isinstance(node, Affine):
            low, exponent = node.sums(self.low, self.high, self.exponents)
            high, exponent = node.sums(self.high, self.low, self.exponents)
            low = [outward(value, RANGE_BITS, up=False) for value in low]
            high = [outward(value, RANGE_BITS, up=True) for value in high]
        else:
            source = node.inputs[0]
            low, high, exponent = (
                node.largest(self.low[source]),
                node.largest(self.high[source]),
                self.exponents[source],
            )
            self.lay_out(index, node)
        self.low.append(low)
        self.high.append(high)
        self.exponents.append(exponent)
        wanted = given["tighten"]
        for unit in [i for i in range(len(low)) if low[i] < 0 < high[i]] if wanted == "open" else wanted:
            for sign in (1, -1):
                for rule in ("plane", "lead") if self.has_leads else ("plane",):
                    self.tighten(index, whole(unit, len(low) - 1), sign, Plan(rule))

    def tighten(self, index: int, unit: int, sign: int, plan: Plan) -> None:
        """Theorem 5 for sign·unit, rounded outward."""
        self.in_time()
        row = [sign * (i == unit) for i in range(self.sizes[index])]
        bound = self.backward(index, row, 0, plan).bound(self.domain) * (1 << self.exponents[index])
        value = outward(-(-bound.numerator // bound.denominator), RANGE_BITS, up=True)
        if sign > 0:
            self.high[index][unit] = min(self.high[index][unit], value)
        else:
            self.low[index][unit] = max(self.low[index][unit], -value)

    def lay_out(self, index: int, node: Choosing) -> None:
        """Which units are decided by an entry, and the planes and leads of the others."""
        source = node.inputs[0]
        lows, highs = [*self.low[source], 0], [*self.high[source], 0]
        units = self.units[index] = []
        for unit, window in enumerate(node.windows):
            first = max(window, key=lows.__getitem__)
            kept = [entry for entry in window if highs[entry] > lows[first] or entry == first]
            if len(kept) == 1:
                units.append(first)
                continue
            units.append(Choice(kept, [lows[entry] for entry in kept], [highs[entry] for entry in kept]))
            self.order.append((index, unit))
            if self.has_leads:
                self.lead(source, units[-1])

    def lead(self, source: int, choice: Choice) -> None:
        """Theorem 3; a way is 2·pixel for its rise and 2·pixel + 1 for its fall."""
        original, domain, most = [*self.values[source], 0], self.domain, dict[int, Fraction]()
        winner = max(choice.entries, key=original.__getitem__)
        choice.leader = choice.entries.index(winner)
        for rival in (entry for entry in choice.entries if entry != winner):
            self.in_time()
            row = [0] * (self.sizes[source] + 1)
            row[rival], row[winner] = 1, -1
            found = self.backward(source, row[:-1], 0, Plan("lead"))
            at_centre = fraction(
                sum(map(int.__mul__, found.row, domain.centre)), found.exponent + domain.exponent
            )
            ratio = (found.constant + at_centre) / (domain.radius or 1)
            need(ratio <= 0, "the leader does not lead at the original")
            spread = -((-ratio.numerator << found.exponent) // ratio.denominator)  # rounded up
            for pixel, gain in enumerate(found.row):
                for way, slope in ((2 * pixel, gain), (2 * pixel + 1, -gain)):
                    rise = slope + found.rises.get(way, 0) + spread
                    if rise > 0:
                        rounded = fraction(outward(rise, RISE_BITS, up=True), found.exponent)
                        most[way] = max(most.get(way, rounded), rounded)
        ints, choice.rise_exponent = as_ints(most.values())
        choice.rises = list(zip(most, ints))

    def add_cut(self, given: Any) -> None:
        """Theorem 4."""
        self.in_time()
        key = self.order[whole(given["cut"])]
        choice, source = self.choice(*key), self.nodes[key[0]].inputs[0]
        node, sign = self.nodes[source], 1 if whole(given["beside"], 1) else -1
        need(isinstance(node, Affine) and choice.entries[1:] == [-1], "a cut is of a ReLU of a sum")
        unit, late, crossing = choice.entries[0], set(given["late"]), whole(given["crossing"])
        need(len(self.cuts) < MOST_UNITS and crossing not in late, "a crossing term is not late")
        terms = [
            (s, j, sign * w, more, sorted((sign * w * self.low[s][j], sign * w * self.high[s][j])))
            for s, (rows, more) in zip(node.inputs, node.weights)
            for j, w in zip(*rows[unit])
        ]
        need(crossing < len(terms), "the crossing term is none")
        below = Fraction(sign * node.bias[unit], 1 << node.bias_exponent)
        exponent, constant = max(more for _, _, _, more, _ in terms) + SLOPE_BITS, Fraction(0)
        found: dict[int, list[Key]] = {}
        for place, (s, j, w, more, (least, most)) in enumerate(terms):
            early = place not in late and place != crossing
            below += fraction(most if early else least, more + self.exponents[s])
            if place in late:
                constant -= fraction(least, more + self.exponents[s])
                found.setdefault(s, []).append((j, w << exponent - more))
        need(below <= 0, "a cut begins above 0")
        s, j, w, more, (least, most) = terms[crossing]
        gain = max(Fraction(0), below + fraction(most - least, more + self.exponents[s]))
        slope = gain / (fraction(self.high[s][j] - self.low[s][j], self.exponents[s]) or 1)
        slope_up = -((-slope.numerator << exponent) // slope.denominator) * (1 if w > 0 else -1)
        found.setdefault(s, []).append((j, slope_up))
        start = self.low[s][j] if w > 0 else self.high[s][j]
        constant -= fraction(slope_up * start, exponent + self.exponents[s])
        self.cuts.append(Cut(key, -1 if sign > 0 else unit, found, exponent, constant))

    # -- theorem 5

    def backward(self, index: int, row: Ints, exponent: int, plan: Plan) -> Linear:
        """A linear function of the image above row · 2^−exponent · (the value of a node)."""
        pending, constant = {index: (row, exponent)}, Fraction(0)
        rises: dict[int, dict[int, int]] = {}
        for current in range(index, 0, -1):
            if current not in pending:
                continue
            row, exponent = pending.pop(current)
            node = self.nodes[current]
            if isinstance(node, Affine):
                constant += fraction(sum(map(int.__mul__, row, node.bias)), exponent + node.bias_exponent)
                parts = [self.through_weights(row, exponent, node, k) for k in range(len(node.inputs))]
            else:
                parts, fixed = self.through_choices(current, row, exponent, plan, rises)
                constant += fixed
            for source, more, its in parts:
                before, other = pending.get(source, ([0] * self.sizes[source], 0))
                common = max(its, other)
                both = zip(aligned(before, other, common), aligned(more, its, common))
                pending[source] = [a + b for a, b in both], common
        return Linear(*pending.get(0, ([0] * self.sizes[0], 0)), rises, constant)

    def through_weights(self, row: Ints, exponent: int, node: Affine, k: int) -> tuple[int, Ints, int]:
        rows, more = node.weights[k]
        total = [0] * self.sizes[node.inputs[k]]
        for c, (columns, values) in zip(row, rows):
            if c:
                for j, weight in zip(columns, values):
                    total[j] += c * weight
        return node.inputs[k], total, exponent + more

    def through_choices(
        self, current: int, row: Ints, exponent: int, plan: Plan, rises: dict[int, dict[int, int]]
    ) -> tuple[list[tuple[int, Ints, int]], Fraction]:
        """The row times its shares and what is added get one exponent, `base`; slopes lower it once more."""
        source, units, bits = self.nodes[current].inputs[0], self.units[current], plan.bits
        added = [each for each in plan.added if each[0][0] == current]
        cuts = [(cut, amount) for cut, amount in plan.cuts if cut.key[0] == current]
        base = (max(exponent, plan.scale) if added or cuts else exponent) + bits
        total, heights, full = [0] * (self.sizes[source] + 1), [0], 1 << bits
        row = list(aligned(row, exponent, base - bits))
        parts, fixed = [], Fraction(0)
        for cut, amount in cuts:
            row[cut.key[1]] -= amount << base - bits - plan.scale
            total[cut.entry] += amount << base - plan.scale + SLOPE_BITS
            fixed += fraction(amount, plan.scale) * cut.constant
            for s, terms in cut.terms.items():
                other = [0] * self.sizes[s]
                for j, coefficient in terms:
                    other[j] += amount * coefficient
                parts.append((s, other, plan.scale + cut.exponent))

        def climb(choice: Choice, plane: int, led: int) -> None:
            total[choice.top] += plane * choice.slope
            heights.append(plane * choice.height)
            if led:
                total[choice.entries[choice.leader]] += led << SLOPE_BITS
                mine = rises.setdefault(base + choice.rise_exponent, {})
                for way, rise in choice.rises:
                    mine[way] = mine.get(way, 0) + led * rise

        for unit, c in enumerate(row):
            key, choice = (current, unit), units[unit]
            if not c:
                continue
            if type(choice) is int:
                total[choice] += c << bits + SLOPE_BITS  # the entry −1 is the last place
            elif key in plan.splits:
                total[choice.entries[plan.splits[key]]] += c << bits + SLOPE_BITS
            elif c > 0:
                led = plan.led(key) if self.has_leads else 0
                climb(choice, c * (full - led), c * led)
            else:
                for entry, share in zip(choice.entries, plan.parts(key, choice)):
                    total[entry] += c * share << SLOPE_BITS
        for (_, unit), j, *amounts in added:
            plane, led, won = (amount << base - plan.scale for amount in amounts)
            climb(units[unit], plane, led)
            if won:
                total[units[unit].entries[plan.splits[current, unit]]] += won << SLOPE_BITS
            total[units[unit].entries[j]] -= plane + led + won << SLOPE_BITS
        below = base + SLOPE_BITS
        fixed += fraction(sum(heights), below + self.exponents[source])
        return [*parts, (source, total[:-1], below)], fixed

    # -- theorems 6 and 7

    def choice(self, index: int, unit: int) -> Choice:
        found = self.units[index][whole(unit)]
        need(isinstance(found, Choice), "a split is at an open choice")
        return found  # type: ignore[no-any-return]

    def leaf(self, given: Any, case: Case, path: list[tuple[Key, int]]) -> None:
        """Theorem 6."""
        self.in_time()
        weights = [whole(weight, 2**64) for weight in given["leaf"]]
        need(len(weights) == len(case), "a leaf weighs each row of its case")
        row, least = [Fraction(0)] * self.sizes[-1], Fraction(0)
        for weight, (entries, threshold) in zip(weights, case):
            least += weight * threshold
            for score, c in entries.items():
                row[score] += weight * c
        plan = self.plan_of(given, path)
        bound = self.backward(len(self.nodes) - 1, *as_ints(row), plan).bound(self.domain)
        need(bound < least, f"a leaf proves nothing: {shown(bound)} is not below {shown(least)}")
        self.leaves += 1

    def plan_of(self, given: Any, path: list[tuple[Key, int]]) -> Plan:
        """The plan of a leaf: it may add what it likes, as long as that is there and not negative."""
        plan = Plan(given.get("rule", "plane"), path, [], whole(given.get("scale", 0), 10_000))
        need(plan.rule == "plane" or (plan.rule == "lead" and self.has_leads), "there is no such rule")
        for place, j, *amounts in given.get("added", ()):
            key = self.order[whole(place)]
            plane, led, won = (whole(amount, 2**4096) for amount in amounts)
            whole(j, len(self.choice(*key).entries) - 1)
            need(not led or self.has_leads, "there are no leads")
            need(not won or key in plan.splits, "a winner is known where there is a split")
            plan.added.append((key, j, plane, led, won))
        for number, amount in given.get("cuts", ()):
            plan.cuts.append((self.cuts[whole(number)], whole(amount, 2**4096)))
        if "shares" in given:
            plan.bits, listed = SHARE_BITS[given["kind"]], numbers(given["shares"], given["kind"]).tolist()
            for key in self.order:
                count = len(self.choice(*key).entries) - 1
                plan.shares[key], listed = listed[:count], listed[count:]
                need(len(plan.shares[key]) == count, "a share is missing")
                need(sum(plan.shares[key]) <= 1 << plan.bits, "shares are no more than all of it")
            need(not listed, "there are more shares than open choices")
        return plan

    def tree(self, lines: Iterator[Any], case: Case) -> None:
        """Theorem 7: the children of a split follow it in order, each with all that is below it."""
        path: list[tuple[Key, int]] = []
        while True:
            given = next(lines)
            if "cut" in given:
                self.add_cut(given)
                continue
            if "split" in given:
                index, unit = map(whole, given["split"])
                self.choice(index, unit)
                need(all((index, unit) != key for key, _ in path), "a choice is split twice")
                need(len(path) < MOST_DEPTH, "a tree is too deep")
                path.append(((index, unit), 0))
                continue
            self.leaf(given, case, path)
            while path and path[-1][1] + 1 == len(self.choice(*path[-1][0]).entries):
                path.pop()
            if not path:
                return
            key, child = path.pop()
            path.append((key, child + 1))

    # -- theorem 8

    def lower_thresholds(self) -> None:
        """By what the scores may be off in float32."""
        errors, exponents = [[0] * self.sizes[0]], [self.exponents[0]]
        for index, node in enumerate(self.nodes[1:], start=1):
            if isinstance(node, Affine):
                error, exponent = self.rounding_of(node, errors, exponents)
            else:
                error, exponent = node.largest(errors[node.inputs[0]]), exponents[node.inputs[0]]
            errors.append(error)
            exponents.append(exponent)
            size = fraction(max(map(abs, self.low[index] + self.high[index])), self.exponents[index])
            need(size + fraction(max(error), exponent) < 2**127, "the network may overflow in float32")
        off = [fraction(error, exponents[-1]) for error in errors[-1]]
        self.cases = [
            [(row, least - sum(abs(c) * off[t] for t, c in row.items())) for row, least in case]
            for case in self.cases
        ]

    def rounding_of(self, node: Affine, errors: list[Ints], exponents: Ints) -> tuple[Ints, int]:
        terms = max(sum(len(rows[unit][0]) for rows, _ in node.weights) for unit in range(node.size))
        need(terms + 3 < 2**22, "a sum has too many terms for a bound on its rounding")
        gamma, one = terms + 3, 2**23  # γ is gamma / one
        total, exponent = [gamma * abs(b) for b in node.bias], node.bias_exponent + 23
        total = [each + (terms << exponent) for each in aligned(total, exponent, exponent + 148)]
        exponent += 148
        for source, (rows, more) in zip(node.inputs, node.weights):
            common = max(exponents[source], self.exponents[source])
            off = aligned(errors[source], exponents[source], common)
            ends = zip(
                *(aligned(end[source], self.exponents[source], common) for end in (self.low, self.high))
            )
            each = [e * (one + gamma) + gamma * max(-low, high) for e, (low, high) in zip(off, ends)]
            found = [sum(abs(w) * each[j] for j, w in zip(*row)) for row in rows]
            wanted = max(exponent, common + 23 + more)
            both = zip(aligned(total, exponent, wanted), aligned(found, common + 23 + more, wanted))
            total, exponent = [a + b for a, b in both], wanted
        return [outward(value, RANGE_BITS, up=True) for value in total], exponent


# ---------------------------------------------------------------------------------------------- the verdict


def shown(value: Fraction) -> str:
    """A fraction as somebody reads it."""
    return f"{value.numerator / value.denominator:.9g}" if abs(value) < 2**1000 else "something huge"


class Report:
    """What was proven."""

    def __init__(self, checker: Checker) -> None:
        self.asked, self.leaves, self.network = checker.asked, checker.leaves, checker.claimed
        self.image = checker.domain.image
        self.distance: Fraction | None = None
        if self.asked["witness"] is not None:
            self.distance, self.slack = checker.check_witness()

    def __str__(self) -> str:
        asked, norm = self.asked, {"l1": "L1", "linf": "L∞"}[self.asked["norm"]]
        within = "in the box" if asked["radius"] is None else f"within {asked['radius']!r} ({norm})"
        margin = f"margin {asked['lead']:g}" if asked["factor"] == 1 else f"factor {asked['factor']:g}"
        margin += "" if asked["least"] is None else f" and a score of {asked['least']:g}"
        where = ", in float32 with sums in any order" if asked["deployed"] else ""
        low, high = asked["pixel_range"]
        within += "" if (low, high) == (0, 1) else f", with pixels from {low:g} to {high:g}"
        within += "" if asked["cap"] is None else f", no pixel changed by more than {asked['cap']:g}"
        within += "" if asked["mask"] is None else f", only the pixels {asked['mask']} changed,"
        change, label, top = "changes the verdict", asked["label"], asked["out_of_top"]
        if asked["targets"] is not None:
            change = f"turns class {label} into class {' or '.join(map(str, asked['targets']))}"
        elif top is not None:
            change = f"puts {top} classes before class {label}"
        said = f"Proven: no image {within} {change} by the {margin}{where}"
        if self.distance is None:
            return f"{said}."
        short = f", but for {shown(-self.slack)}" if self.slack < 0 else ""
        return f"{said}; the witness at {shown(self.distance)} does{short}: the nearest lies between."


def check(path: str, seconds: float | None = None) -> Report:
    """Check a file: a report, or Refused with the reason."""
    return checked_safely(lines_of(path), seconds)


def checked_safely(lines: Iterator[Any], seconds: float | None = None) -> Report:
    try:
        return checked(lines, seconds)
    except (*UNREADABLE, StopIteration, ValueError, zlib.error) as error:
        raise Refused(f"the file cannot be read as a proof: {type(error).__name__}: {error}"[:300]) from None


def checked(lines: Iterator[Any], seconds: float | None = None) -> Report:
    checker = Checker(next(lines), seconds)
    for _ in range(checker.count):
        checker.add_node(next(lines))
    checker.ask(next(lines))
    for _ in range(checker.count):
        checker.add_ranges(next(lines))
    if checker.asked["deployed"]:
        checker.lower_thresholds()
    for number, case in enumerate(checker.cases):
        need(next(lines) == {"case": number}, f"the tree of case {number} is missing")
        checker.tree(lines, case)
    need(next(lines) == {"end": checker.leaves}, "the end tells another number of leaves")
    need(next(lines, None) is None, "something follows the end")
    return Report(checker)


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1 or given[0].startswith("-"):
        print("Give one proof: closecheck proof.ccp", file=sys.stderr)
        return 2
    try:
        report = check(given[0])
    except OSError as error:
        print(f"{given[0]} cannot be read: {error.strerror or error}.", file=sys.stderr)
        return 2
    except Refused as reason:
        print(f"Refused: {reason}.")
        return 1
    print(f"{report}\n{report.leaves} leaves; network {report.network}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
