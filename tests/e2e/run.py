#!/usr/bin/env python3
"""The fixture around the end-to-end tests: `run.py up` starts build/e2e/cluster, `run.py down` ends everything there."""
import shutil
import sys

from harness import WORK, Cluster, end_left_behind, install_crds


def main(argument):
    if argument not in ("up", "down"):
        sys.exit(__doc__)
    end_left_behind(WORK / "run")
    cluster = Cluster(WORK / "cluster", say=print)
    if argument == "up":
        cluster.up()
        install_crds(cluster)
    else:
        cluster.down()
        shutil.rmtree(WORK / "pki", ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
