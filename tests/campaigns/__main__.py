"""``python -m tests.campaigns``: run campaigns; go on with those that were stopped."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path

# Before anything else is loaded: children are forked from this process, and threads do not survive that.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
    os.environ[_name] = "1"

from tests.campaigns.harness import FAILED, Sizes, run_campaign, table  # noqa: E402

NAMES = ("crashes", "damaged", "rounds", "kills", "hostile", "soak")


def main(arguments: list[str] | None = None) -> int:
    """Run campaigns; 1 if a trial failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    for field in fields(Sizes):
        parser.add_argument(f"--{field.name}", type=int, default=field.default, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at once")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"), help="folder of the trials' records")
    parser.add_argument("--only", metavar="NAME:NUMBER", help="run one trial again, and keep its folder in OUT")
    given = parser.parse_args(arguments)
    only = given.only.split(":") if given.only else None
    names = [only[0]] if only else given.names or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no campaign {unknown.pop()}")
    sizes = Sizes(**{field.name: getattr(given, field.name) for field in fields(Sizes)})
    given.out.mkdir(parents=True, exist_ok=True)
    results = {}
    with tempfile.TemporaryDirectory(prefix="pictopic-campaigns-") as scratch:
        for name in names:
            shared = Path(scratch, name, "shared")
            shared.mkdir(parents=True)
            campaign = _campaign(name)(shared, sizes, given.seed)
            results[name] = run_campaign(campaign, given.out, given.jobs, int(only[1]) if only else None)
    summary = [
        *table(results),
        "",
        f"Seed {given.seed}, commit {_commit()}, {time.strftime('%Y-%m-%d', time.gmtime())}.",
    ]
    print("\n".join(summary))
    if not only:
        (given.out / "summary.md").write_text("\n".join(summary) + "\n", encoding="utf-8")
    failed = [(name, line["number"]) for name, lines in results.items() for line in lines if line["outcome"] == FAILED]
    if failed:
        name, number = failed[0]
        options = " ".join(f"--{field.name} {getattr(sizes, field.name)}" for field in fields(Sizes))
        again = f"--only {name}:{number} --seed {given.seed} {options}"
        print(f"one of {len(failed)} again: python -m tests.campaigns {again}")
    return int(bool(failed))


def _campaign(name: str):
    from importlib import import_module

    return import_module(f"tests.campaigns.{name}").CAMPAIGN


def _commit() -> str:
    import subprocess

    command = ["git", "describe", "--always", "--dirty"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
