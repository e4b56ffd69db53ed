"""The program died: which calls it died in."""

from __future__ import annotations

from collections.abc import Iterator

from pyfunc_debug.analysis.death import calls_in_progress, describe_call, how_it_ended
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding

NAMES = ("died",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding where calls were in progress; of a program that died outside all calls the ledger's footer tells."""
    calls = calls_in_progress(facts.reader)
    if not calls:
        return
    sign_ns = int(facts.meta["death"]["sign_ns"])
    threads = {thread.id: thread.name for thread in facts.reader.threads()}
    shown = [describe_call(call, facts.nodes[call.node], threads, sign_ns) for call in calls]
    node = facts.nodes[calls[0].node]
    ended = how_it_ended(facts.reader)
    if len(calls) == 1:
        what = f"the program {ended} in {shown[0]}"
    else:
        what = f"the program {ended} with {len(calls):,} calls in progress, the oldest of them {shown[0]}"
    fix = "import faulthandler; faulthandler.enable()  # first in the program: a crash then prints its Python line"
    hung = {call for _, call, _ in facts.notices["hang"]}
    works = any(one.get("working") for _, _, one in facts.notices["hang"])
    how = "It did not come to its end" if works else "Nothing moved in it any more"
    finding = "forked-process" if facts.notices["forked"] else "hang"
    if ended == "died" and hung.issuperset(call.id for call in calls):
        yield Finding(
            "died", "note", node.id, tuple(call.id for call in calls),
            f"{what}. {how} (see the finding {finding}): then a signal ended it",
            f"see the finding {finding}, which has the line", node.file, node.line, evidence=tuple(shown[1:4]),
        )  # fmt: skip
        return
    if ended == "died":
        what += (
            ". No exception left Python: it was a crash in C code, os.abort, or a signal (the memory killer's SIGKILL)"
        )
    else:
        what += ". Something outside sent it: a scheduler, a container that was stopped, `timeout`, `kill`"
        fix = (
            "import faulthandler, signal; faulthandler.register(signal.SIGTERM, chain=True)  # after recording began: "
            "SIGTERM then prints every thread's Python line"
        )
    yield Finding(
        "died", "error" if ended == "died" else "note", node.id, tuple(call.id for call in calls), what,
        fix, node.file, node.line, evidence=tuple(shown[1:4]),
    )  # fmt: skip
