"""How fast tags are given to pictures on disk, against describing the pictures alone.

``python -m benchmarks.annotation_speed`` draws 400 scenes, learns from them and annotates 1,000 pictures, one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.timing import report
from pictopic import PictureModel
from pictopic.corpus.chunks import make_chunk
from pictopic.demo.scenes import write_scenes
from pictopic.words.extract import Extractor

N_PICTURES = 1000
_CHUNK = 32


def main(arguments: list[str] | None = None) -> None:
    """Print the share of the time that describing pictures takes."""
    argparse.ArgumentParser(prog="python -m benchmarks.annotation_speed", description=__doc__).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        source = write_scenes(Path(folder) / "scenes", n=400)
        model = PictureModel(n_jobs=1, verbose=0).fit(source)
        corpus = model.corpus_
        paths = [str(path) for path in (corpus.paths * 3)[:N_PICTURES]]
        extractor = Extractor(corpus.options, corpus.codebook)
        start = time.process_time()
        for k in range(0, len(paths), _CHUNK):
            make_chunk(paths[k : k + _CHUNK], extractor)
        alone = time.process_time() - start
        start = time.process_time()
        model.annotate(paths)
        whole = time.process_time() - start
    report("annotate 1,000 pictures", share_of_feature_speed=alone / whole, ms_a_picture=1000 * whole / N_PICTURES)


if __name__ == "__main__":
    main()
