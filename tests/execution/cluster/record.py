"""Run an experiment through a Slurm of its own and write what it said to docs/results/slurm.md.

python -m tests.execution.cluster.record [EXPERIMENT]      default: smoke
"""

import os
import platform
import re
import sys
import tempfile
import time
from pathlib import Path

from pipeline.backends.devices.cpu.detection import read_cpu
from pipeline.store.current_provenance import revision
from tests.end_to_end.checkout import ROOT
from tests.execution.cluster import slurm as installation
from tests.execution.cluster.slurm import Slurm
from tests.execution.cluster.test_slurm import PROFILE, Site

OUT = ROOT / "docs" / "results" / "slurm.md"
PATIENCE = 1200.0
"""Seconds: on a quiet machine it takes two minutes, beside eight busy processes on two cores five."""
_NOISE = re.compile(r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} .*\]|SLURM run ID.*|Cleaning up SLURM.*|.*MLflow.*http.*")
_FIELDS = (
    "JobId",
    "JobState",
    "Partition",
    "NumCPUs",
    "TresPerNode",
    "OverSubscribe",
    "TimeLimit",
    "RunTime",
)


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    experiment = arguments[0] if arguments else "smoke"
    with tempfile.TemporaryDirectory(prefix="kernelmill-slurm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        reason = installation.missing()
        plugin = installation.plugin_path(folder / "plugin")
        if reason or isinstance(plugin, str):
            print(reason or plugin, file=sys.stderr)
            return 1
        (folder / "cluster").mkdir()
        cluster = Slurm(folder / "cluster")
        try:
            site = Site(folder / "project", cluster, plugin)
            site.patience = PATIENCE
            OUT.write_text(_page(experiment, site, cluster))
        finally:
            cluster.stop()
    print(OUT)
    return 0


def _page(experiment: str, site: Site, cluster: Slurm) -> str:
    started = time.monotonic()
    first = site.module("pipeline", "run", f"experiment={experiment}", "--", "--profile", PROFILE)
    seconds = time.monotonic() - started
    jobs = [cluster.described(job) for job in sorted(cluster.jobs("all"), key=int)]
    started = time.monotonic()
    second = site.snakemake("--config", f"experiment={experiment}")
    again = time.monotonic() - started
    facts = read_cpu().facts
    table = "\n".join("| " + " | ".join(job.get(name, "") for name in _FIELDS) + " |" for job in jobs)
    return f"""\
# A run through Slurm

Written by `python -m tests.execution.cluster.record {experiment}`, commit {revision(ROOT)}: a Slurm of one
node, {cluster("sbatch", "--version").strip()}, on {facts["model"]}, {facts["threads"]} threads,
{facts["system"]}, Python {platform.python_version()}; load average at the end:
{os.getloadavg()[1]:.1f} (5 minutes). The profile is `{PROFILE}` with a first status check
after one second. While no job ends, the executor adds ten seconds to each further check, which may delay the
end of the run by as much. Each job starts Snakemake and, per stage, Python with torch, because cluster jobs
use no warm worker. The site:

```yaml
{(site.folder / PROFILE / "site.yaml").read_text().strip()}
```

## The run: {seconds:.0f} s

```
$ kernelmill run experiment={experiment} -- --profile {PROFILE}
{_readable(first, site)}
```

## Its Slurm jobs

From `scontrol show job`; each job is compile, verify and profile of one task.

| {" | ".join(_FIELDS)} |
|{"---|" * len(_FIELDS)}
{table}

## The same again: {again:.1f} s

```
$ snakemake --profile {PROFILE} --config experiment={experiment}
{_readable(second, site)}
```
"""


def _readable(output: str, site: Site) -> str:
    """Without times of day, blank lines and this machine's folders."""
    lines = output.replace(str(site.folder), ".").replace(str(site.scratch), "<scratch>").splitlines()
    return "\n".join(line for line in lines if line.strip() and not _NOISE.fullmatch(line.strip()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
