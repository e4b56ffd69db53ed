"""How benchmarks see one percent: many short mirrored rounds on fixed cores, and an interval from them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

Spent = dict[str, list[tuple[float, ...]]]
"""By variant: what each round took, of each clock."""


def pin(elsewhere: Collection[int] = ()) -> None:
    """Puts all threads on the first core that there is, and those `elsewhere`, by native id, on the last."""
    cores = sorted(os.sched_getaffinity(0))
    for thread in map(int, os.listdir("/proc/self/task")):
        os.sched_setaffinity(thread, {cores[-1] if thread in elsewhere else cores[0]})


def mirrored(variants: Mapping[str, Callable[[], Sequence[float]]], seconds: float) -> Spent:
    """What each variant takes; a round takes each twice, in a random order and then in the reverse."""
    taken: Spent = {name: [] for name in variants}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        order = random.sample([*taken], len(taken))
        spent: dict[str, list[Sequence[float]]] = {name: [] for name in taken}
        for name in (*order, *reversed(order)):
            spent[name].append(variants[name]())
        for name, both in spent.items():
            taken[name].append(tuple(map(sum, zip(*both))))
    return taken


def ratio(spent: Sequence[tuple[float, ...]], base: Sequence[tuple[float, ...]], clock: int = 0) -> str:
    """The mean of the rounds' ratios without the outer fifths, and where 95 of 100 draws of as many rounds have it."""
    logs = np.log([one[clock] / other[clock] for one, other in zip(spent, base)])

    def mean(some: np.ndarray) -> float:
        cut = len(some) // 5
        return float(np.sort(some)[cut : len(some) - cut].mean())

    chosen = np.random.default_rng(0).integers(0, len(logs), (1000, len(logs)))
    low, high = np.exp(np.quantile([mean(logs[one]) for one in chosen], (0.025, 0.975)))
    return f"{np.exp(mean(logs)):.4f} ({low:.4f} to {high:.4f})"
