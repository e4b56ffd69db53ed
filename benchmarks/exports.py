"""Every recorded call of the demo, the lessons and the corpus as a test: how many pass, and what the others say.

    python -m benchmarks.exports [demo] [corpus] [lessons] [--only 01 decorator ...] [--most 50] [--from-file]
    python -m benchmarks.exports large [--calls 1000000] [--only perfetto chrome]

Each program is recorded with values="full", in a process of its own; a call becomes a test as soon as its recording
stops, or with --from-file from the file alone, as another process would. Then pytest runs all of them. `large`
measures the other formats, and a query of all values: time, CPU time and memory for two million values and for a tenth
of them.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("demo", "corpus", "lessons")
_LONGEST = 400
LARGE = {
    "parquet": ("export", "--format", "parquet", "-o", "tables"),
    "chrome": ("export", "--format", "chrome", "-o", "trace.json"),
    "perfetto": ("export", "--format", "perfetto", "-o", "trace.pftrace"),
    "pfrec": ("export", "--format", "pfrec", "--redact", "all", "-o", "copy.pfrec"),
    "query, csv": ("query", "SELECT * FROM value"),
}
"""What is done with a large recording."""


def export_when_stopped(folder: str, most: int, from_file: bool) -> None:
    """In the process of a program: keeps all values, and writes the tests of a recording when it stops.

    Args:
      folder: Where to; each recording has a folder of its own there.
      most: Calls of a node that become tests, spread evenly over all.
      from_file: Whether nothing of the running program is asked.
    """
    from pyfunc_debug.api.live import LiveRecording
    from pyfunc_debug.recorder import Budget
    from pyfunc_debug.values import Policies

    begin, stop = LiveRecording.__init__, LiveRecording.stop

    def begin_full(self, path, options):
        kept = Policies("full", options.policies.nodes)
        begin(self, path, dataclasses.replace(options, policies=kept, budget=Budget(1 << 30), sampling=None))

    def stop_and_export(self):
        first = self.state == "recording"
        stop(self)
        if first:
            export(self, Path(folder, f"recording_{len(os.listdir(folder))}"), most, from_file)

    LiveRecording.__init__, LiveRecording.stop = begin_full, stop_and_export


def export(recording, folder: Path, most: int, from_file: bool) -> None:
    """Writes the tests of a recording's calls, and into `refused` why others have none."""
    import pyfunc_debug

    folder.mkdir()
    source = pyfunc_debug.open(recording.path) if from_file else recording
    calls = collections.defaultdict(list)
    for call in source.calls():
        calls[call.node, call.kind].append(call.id)
    bodies = {node.id: node.body for node in source.nodes()}
    with open(folder / "refused", "w") as refused:
        for (node, _), numbers in calls.items():
            for number in numbers[:: -(-len(numbers) // most)]:
                try:
                    source.call(number).to_pytest(folder / f"test_{folder.name}_{number}.py")
                except pyfunc_debug.NotKeptError as error:
                    refused.write(f"{bodies[node]}: {' '.join(str(error).split())}\n")


def run(source: str, name: str, folder: str, most: int, from_file: bool) -> None:
    """One program, in this process."""
    if source == "lessons":
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.read(next(ROOT.glob(f"notebooks/{name}*.ipynb")), as_version=4)
        first = f"from benchmarks.exports import export_when_stopped\nexport_when_stopped{(folder, most, from_file)!r}"
        notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
        where = {"metadata": {"path": tempfile.mkdtemp(dir=os.path.dirname(folder))}}
        NotebookClient(notebook, timeout=500, resources=where, allow_errors=True).execute()
        return
    export_when_stopped(folder, most, from_file)
    if source == "demo":
        from pyfunc_debug import record
        from pyfunc_debug.demo import digits

        with record():
            digits.train(10)
    else:
        from tests.corpus.run import main as record_programs

        record_programs("recorded", tempfile.mkdtemp(dir=os.path.dirname(folder)), name.split(",") if name else [])


def large(calls: int, only: list[str]) -> None:
    """Exports a recording, and one of a tenth of its calls, by the command line, each in a process of its own."""
    from benchmarks.doctor import write

    with tempfile.TemporaryDirectory() as folder:
        for count in (calls // 10, calls):
            write(Path(folder, f"{count}.pfrec"), count)
        for name, words in LARGE.items():
            if only and name not in only:
                continue
            size, peak, taken = [], [], 0.0
            for count in (calls // 10, calls):
                command = [sys.executable, "-m", "pyfunc_debug", words[0], f"{count}.pfrec", *words[1:]]
                with open(Path(folder, "out"), "wb") as out:
                    begun = time.perf_counter()
                    child = subprocess.Popen(
                        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                        env={**os.environ, "PYTHONPATH": str(ROOT)},
                    )  # fmt: skip
                    _, status, usage = os.wait4(child.pid, 0)
                    child.returncode = os.waitstatus_to_exitcode(status)
                    taken = time.perf_counter() - begun
                assert child.returncode == 0, command
                made = Path(folder, words[words.index("-o") + 1] if "-o" in words else "out")
                files = [made] if made.is_file() else [one for one in made.rglob("*") if one.is_file()]
                size.append(sum(one.stat().st_size for one in files) / 1e6)
                peak.append(usage.ru_maxrss / 1024)
                shutil.rmtree(made) if made.is_dir() else made.unlink()
            print(
                f"{name}: {calls:,} calls in {taken:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of CPU, "
                f"{size[1]:.0f} MB written; {peak[0]:.0f} MB memory with a tenth of the calls, {peak[1]:.0f} MB with "
                "all",
                flush=True,
            )


def outcomes(folder: Path) -> tuple[collections.Counter[str], list[str]]:
    """Runs the tests of a folder; how many passed, failed and skipped, and what the latter two say."""
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = -q -p no:cacheprovider -p no:xdist -p no:pyfunc_debug --import-mode=importlib "
        "--continue-on-collection-errors --junitxml=outcome.xml\n"
    )
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "."]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    found, says = collections.Counter(), []
    for case in ElementTree.parse(folder / "outcome.xml").iter("testcase"):
        kind = next((one.tag for one in case if one.tag in ("failure", "error", "skipped")), "passed")
        kind = "unsure" if any(one.get("type") == "pytest.xfail" for one in case) else kind
        found[kind] += 1
        for one in case:
            if one.tag in ("failure", "error") or "Skipped: " in (one.text or ""):
                text = one.text or "" if kind != "failure" else one.get("message", "")
                text = text.partition("Skipped: ")[2] if kind == "skipped" else text[-_LONGEST:]
                says.append(f"{kind}: {' '.join(text.split())[:_LONGEST]} [{case.get('name').rpartition('.')[2]}]")
    for file in folder.rglob("refused"):
        for line in file.read_text().splitlines():
            found["refused"] += 1
            says.append(f"refused {line}")
    return found, says


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", help=", ".join(SOURCES))
    parser.add_argument("--only", nargs="*", default=[], help="lessons, programs of the corpus, or formats")
    parser.add_argument("--most", type=int, default=50, help="calls of a node, spread evenly")
    parser.add_argument("--from-file", action="store_true", help="from the file alone")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--keep", metavar="FOLDER", help="where the tests stay")
    parser.add_argument("--calls", type=int, default=1_000_000, help="of `large`")
    arguments = parser.parse_args()
    if arguments.sources == ["large"]:
        return large(arguments.calls, arguments.only)
    if arguments.child:
        return run(*arguments.child, arguments.most, arguments.from_file)
    lessons = arguments.only or [path.name[:2] for path in sorted(ROOT.glob("notebooks/0*.ipynb"))]
    names = {"demo": [""], "lessons": lessons}
    with tempfile.TemporaryDirectory() as temporary:
        total = collections.Counter()
        for source in arguments.sources or SOURCES:
            if source == "corpus":
                from tests.corpus import programs  # noqa: F401  # fills the table
                from tests.corpus.table import ALONE

                names["corpus"] = [",".join(arguments.only)] if arguments.only else ["", *sorted(ALONE)]
            folder = Path(arguments.keep or temporary, source)
            for name in names[source]:
                (made := folder / (re.sub(r"\W+", "_", name)[:40] or "all")).mkdir(parents=True)
                options = ["--most", str(arguments.most), *["--from-file"] * arguments.from_file]
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.exports", "--child", source, name, str(made), *options],
                    cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
            found, says = outcomes(folder)
            total += found
            said = collections.defaultdict(list)
            for one in says:
                text, _, example = one.partition(" [")
                said[re.sub(r"#?\b\d+\b", "N", text)].append(example.rstrip("]"))
            for text, examples in sorted(said.items(), key=lambda one: -len(one[1])):
                print(f"  {len(examples):4} {text} {examples[0]}")
            print(f"{source}: {_share(found)}", flush=True)
        print(f"all: {_share(total)}")
    return None


def _share(found: collections.Counter[str]) -> str:
    told = found["skipped"] + found["unsure"] + found["refused"]
    tests = found.total() - found["refused"]
    return (
        f"{found.total()} calls; {tests} tests: {found['passed']} pass, {found['skipped']} name what to write, "
        f"{found['unsure']} fail and say why they may, "
        f"{found['failure'] + found['error']} fail; {found['refused']} have none and say why; "
        f"pass or say why not: {(found['passed'] + told) / max(1, found.total()):.1%}"
    )


if __name__ == "__main__":
    main()
