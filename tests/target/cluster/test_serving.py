"""A worker that waits for plans leaves its machine in peace."""

import subprocess
import sys
from pathlib import Path

import dask
from distributed import Client, LocalCluster


def test_no_profiler_wakes_a_hundred_times_a_second(tmp_path: Path) -> None:
    ajuste = Path(sys.executable).parent / "ajuste"
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
        subprocess.Popen(
            [ajuste, "worker", "--scheduler", cluster.scheduler_address, "--threads", "1"],
            env={"AJUSTE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as worker,
    ):
        try:
            client.wait_for_workers(1, timeout=60)
            enabled = client.run(dask.config.get, "distributed.worker.profile.enabled")
            assert list(enabled.values()) == [False]
        finally:
            worker.terminate()
