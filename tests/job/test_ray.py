"""Actors of Ray record themselves where `runtime_env` asks for it; its tasks read a lake."""

from __future__ import annotations

import os
import re
import tempfile
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

import pyfunc_debug as pfd
from tests import forked
from tests.fleet.test_fleet import simulated
from tests.limits import LIGHT

MISSING = [name for name in ("ray", "duckdb") if find_spec(name) is None]  # not imported: that takes a second or two
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")]
ROOT = Path(__file__).parents[2]
PATIENT = {
    "RAY_worker_register_timeout_seconds": "300", "RAY_agent_register_timeout_ms": "300000",
    "RAY_gcs_rpc_server_connect_timeout_s": "300", "RAY_gcs_rpc_server_reconnect_timeout_s": "300",
    "RAY_gcs_server_request_timeout_seconds": "300", "RAY_health_check_failure_threshold": "100",
    "RAY_raylet_client_num_connect_attempts": "100",
}  # fmt: skip
"""Its servers wait for each other as long as a busy machine takes; one that waited too long ends, for good."""
PROGRAM = """
    import contextlib, os, random, select, socket, sys, time, types
    import ray
    from ray._private import node, services

    def train(rank, steps=5):
        import tensorflow as tf

        def double(x):
            return x * 2

        step = tf.function(lambda x: tf.numpy_function(double, [x], tf.float32))
        return [float(step(tf.constant(float(one + rank)))) for one in range(steps)]

    @ray.remote(num_cpus=0.5)
    class Trainer:
        def train(self, rank):
            return train(rank), os.getpid()

    variables = {"PYFUNC_DEBUG": "record:" + os.path.abspath("run"), "PYTHONPATH": sys.argv[1]}
    # Its own servers have 30 s to start, which is not enough on a machine that does much else: its clock goes slower.
    slow = types.SimpleNamespace(**vars(time))
    slow.monotonic = lambda: time.monotonic() / 10
    node.time = slow
    # Nobody asks its autoscaler or reads its logs: each is a process that imports Ray, 2.5 s of CPU.
    node.Node.start_monitor = node.Node.start_log_monitor = lambda self: None
    # Where its agents choose their ports, the raylet waits 15 s to read them, and ends, for good. So they get some that
    # are free on all addresses, below those (32768 and up) that Linux gives whoever asks for any in the meantime.
    below = iter(random.sample(range(20_000, 32_000), 1_000))
    start = node.Node.__init__

    def is_free(port):
        with contextlib.suppress(OSError), socket.socket() as asked:
            asked.bind(("", port))
            return True
        return False

    def with_ports(self, ray_params, *args, **options):
        for name in ("metrics_agent", "metrics_export", "dashboard_agent_listen", "runtime_env_agent"):
            setattr(ray_params, f"{name}_port", next(port for port in below if is_free(port)))
        told = f"--dashboard_agent_listen_port={ray_params.dashboard_agent_listen_port}"  # Ray tells the agent only
        begin = services.start_ray_process
        services.start_ray_process = lambda command, kind, *args, **options: begin(
            [*command, told] if kind == "raylet" else command, kind, *args, **options
        )
        start(self, ray_params, *args, **options)

    node.Node.__init__ = with_ports
    ray.init(
        num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000,
        _node_ip_address="127.0.0.1", _temp_dir=sys.argv[2], runtime_env={"env_vars": variables},
    )
    actors = [Trainer.options(name="trainer-0").remote(), Trainer.remote()]
    told = ray.get([one.train.remote(rank) for rank, one in enumerate(actors)])
    ends = [os.pidfd_open(pid) for _, pid in told]
    ray.kill(actors[1])
    with contextlib.suppress(ray.exceptions.RayActorError):  # died, or unavailable: as its end is told first
        ray.get(actors[0].__ray_terminate__.remote())
    for end in ends:
        select.select([end], [], [])
    from pyfunc_debug import fleet

    rows = fleet.sums("lake")
    print("lake", len(rows), rows == fleet.sums("lake", engine="ray"))
    ray.shutdown()
    recorded = [values for values, _ in told]
    print(recorded == [train(rank) for rank in range(2)], recorded)
"""


def ends_of_logs(folder: Path) -> str:
    """What Ray's servers wrote of errors, and their last lines: why one of them ended stands nowhere else.

    A server that ends by itself says why above its stack, which is longer than these last lines.
    """
    found = []
    for log in sorted(folder.glob("session_2*/logs/*")):
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
        grave = [line for line in lines[:-12] if re.search(r" [CEF] \d+ \d+\] ", line)]
        found += [f"--- {log.name}", *grave[-12:], *lines[-12:]] if lines else []
    return "\n".join(found)


def test_each_actor_has_its_file_and_computes_what_it_computes_without_us(tmp_path):
    """And a fleet's rows are those that DuckDB gives."""
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    simulated(tmp_path / "lake", jobs=2, processes=3, calls=5)
    on_path = os.pathsep.join(filter(None, (
        str(ROOT / "pyfunc_debug" / "job" / "on_path"), LIGHT, str(ROOT), os.environ.get("PYTHONPATH"),
    )))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # the paths of sockets are short
        done = forked.run("train.py", on_path, folder, cwd=tmp_path, env={
            **os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "TF_CPP_MIN_LOG_LEVEL": "3",
            **PATIENT,
        })  # fmt: skip
        logs = ends_of_logs(Path(folder))
    said = [line for line in done.stdout.splitlines() if "(raylet)" not in line]
    assert said == ["lake 18 True", "True [[0.0, 2.0, 4.0, 6.0, 8.0], [2.0, 4.0, 6.0, 8.0, 10.0]]"], (
        f"{done.stderr[-3000:]}\n{logs}"
    )
    processes = pfd.open(str(tmp_path / "run")).ledger().processes
    assert [(one.name, one.calls, one.state) for one in sorted(processes, key=lambda one: one.name)] == [
        ("Trainer", 5, "unfinished"), ("trainer-0", 5, "complete"),
    ]  # fmt: skip
    assert all(one.path.endswith(f"-{one.pid}-{one.name}.pfrec") for one in processes)
