"""All measurements."""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import annotation_speed, deep, features, search, training_speed, transform_speed


def main() -> None:
    """Run the speed measurements on made-up corpora, and those on real data where --data is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    parser.add_argument("--data", type=Path, help="folder with labelme8/")
    data = parser.parse_args().data
    # One thread in every library: CPU time counts threads that only wait for work, too.
    with threadpool_limits(1):
        training_speed.main()
        transform_speed.main()
        deep.main()
        search.main([])
        annotation_speed.main([])
        if data is not None:
            features.main(["--data", str(data)])


if __name__ == "__main__":
    main()
