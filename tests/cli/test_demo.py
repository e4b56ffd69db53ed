"""The demo is the README's main job: it records, prints the ledger and the findings, and leaves a file."""

import pyfunc_debug as pfd
from tests import forked
from tests.cli.test_record import ENVIRONMENT


def test_the_demo_records_a_real_pipeline(tmp_path):
    done = forked.run("-m", "pyfunc_debug", "demo", cwd=tmp_path, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert "even_contrast returned NaN from finite inputs" in " ".join(done.stdout.split())
    assert "-random]" not in done.stdout  # each of its calls makes its own generator
    recording = pfd.open(tmp_path / "demo.pfrec")
    pasted = {line for one in recording.findings() for line in one.fix.splitlines()}  # code is not folded
    folded = [line for line in done.stdout.splitlines() if not line.startswith("  -> ") and line not in pasted]
    assert max(map(len, folded)) <= 80
    rows = {node.node.body: node for row in recording.ledger().rows for node in row.nodes}
    assert set(rows) == {"cut_patch", "even_contrast", "log_huber"}
    assert rows["log_huber"].calls == rows["log_huber"].gradients == 40
    assert rows["cut_patch"].calls == rows["even_contrast"].calls >= 640
    nan = [call for call in recording.calls("even_contrast") if call.outputs and call.outputs[0].nan]
    assert len(nan) >= 1
    assert all(call.inputs[0].min == call.inputs[0].max for call in nan)  # the empty corners
    images = recording.call(1)
    assert images.run is None  # C++ started it
