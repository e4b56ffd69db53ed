"""The stages of a loop's dataset with the pool that this loop's own dataset has.

A body may be in the pipelines of several loops, of which one has options, and another has none: a dataset has those of
the dataset that it is made of, and `with_options` gives them to what is made of its result only.
"""

from __future__ import annotations

from pyfunc_debug.analysis.inputs import Loop
from pyfunc_debug.analysis.stages import StageAnswer, make_stages
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Frame


def stages(facts: Facts, loop: Loop) -> list[StageAnswer]:
    """What `facts.stages` says, for the pool of this loop's dataset.

    Args:
      facts: The recording.
      loop: One of its loops.
    """
    pool = _pool(facts, loop)
    known = facts.stages
    own = [one for one in known if one.contention.node.id in loop.nodes]
    if all(one.setting is None or one.setting.pool == pool for one in own):
        return known
    cores = int(facts.meta.get("cores") or 1)
    return make_stages(facts.reader, pool=pool or cores, contention=facts.contention)


def _pool(facts: Facts, loop: Loop) -> int | None:
    """The private_threadpool_size of the datasets that a loop's line reads: the least; None where one has none."""
    found = [
        one["pool"] for one in facts.meta.get("inputs") or ()
        if one["site"] and loop.site is not None and Frame(*one["site"][:3]) == loop.site
        and tuple(stage["kind"] for stage in one["stages"]) == loop.kinds
    ]  # fmt: skip
    return min(found) if found and None not in found else None
