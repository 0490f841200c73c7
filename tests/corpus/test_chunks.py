import ctypes
import os
import shutil

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from pictopic.corpus.chunks import (
    chunk_bytes,
    count_words,
    draw_descriptors,
    in_processes,
    is_whole,
    make_chunk,
    read_chunk,
)
from pictopic.words.codebook import Codebook, Sample
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.pictures import gray, open_picture
from pictopic.words.sift import dense_sift
from tests.corpus.conftest import write_pictures

OPTIONS = WordOptions(n_words=5, step=12, features=("cld",))


@pytest.fixture
def paths(tmp_path):
    write_pictures(tmp_path, 3)
    (tmp_path / "bad.jpg").write_bytes(b"")
    return [str(tmp_path / name) for name in ("0.jpg", "bad.jpg", "1.jpg", "2.jpg")]


def process_and_threads(_):
    return os.getpid(), os.environ.get("OMP_NUM_THREADS")


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def double(number):
    return 2 * number


def test_a_chunk_is_read_as_it_was_written(paths, tmp_path, rng):
    chunk = make_chunk(paths, Extractor(OPTIONS, Codebook(rng.uniform(size=(5, 128)))), with_hashes=True)
    assert len(chunk.hashes) == len(chunk.readable) > 0
    (tmp_path / "chunk.npz").write_bytes(chunk_bytes(chunk))
    again = read_chunk(tmp_path / "chunk.npz")
    assert again.skipped == chunk.skipped == [(1, "empty file")]
    assert again.readable.tolist() == [0, 2, 3]
    assert (again.counts != chunk.counts).nnz == 0
    np.testing.assert_array_equal(again.features, chunk.features)
    np.testing.assert_array_equal(again.sizes, [[64, 48]] * 3)
    np.testing.assert_array_equal(again.hashes, chunk.hashes)


def test_a_chunk_without_a_readable_picture_is_empty(paths, tmp_path):
    chunk = make_chunk(paths[1:2], Extractor(OPTIONS, Codebook(np.eye(128)[:5])))
    (tmp_path / "chunk.npz").write_bytes(chunk_bytes(chunk))
    assert read_chunk(tmp_path / "chunk.npz").counts.shape == (0, 20)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_chunk_is_found_out(paths, tmp_path, rng, damage):
    content = bytearray(chunk_bytes(make_chunk(paths, Extractor(OPTIONS, Codebook(rng.uniform(size=(5, 128)))))))
    (tmp_path / "chunk.npz").write_bytes(content)
    assert is_whole(tmp_path / "chunk.npz")
    if damage == "missing":
        (tmp_path / "chunk.npz").unlink()
    else:
        content[len(content) // 3] ^= 1
        (tmp_path / "chunk.npz").write_bytes(content if damage == "changed" else content[:-9])
    assert not is_whole(tmp_path / "chunk.npz")


def test_a_machine_that_sees_none_of_the_pictures_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be there under the same path on every machine"):
        count_words([str(tmp_path / "elsewhere" / "a.jpg")], OPTIONS, np.eye(128)[:5], str(tmp_path / "elsewhere"))


def test_drawn_descriptors_are_the_pictures_own(paths):
    sample = Sample(11)
    folder = os.path.dirname(paths[0])
    sample.add(draw_descriptors(paths, [7, 8, 9, 10], OPTIONS, seed=0, size=11, limit=1.0, folder=folder))
    drawn = sample.drawn()
    assert len(drawn.keys) == 11
    assert set(drawn.pictures) <= {7, 9, 10}
    assert (np.diff(drawn.keys) >= 0).all()
    path_of = {7: paths[0], 9: paths[2], 10: paths[3]}
    for descriptor, place, picture in zip(drawn.descriptors, drawn.places, drawn.pictures, strict=True):
        descriptors, places = dense_sift(gray(open_picture(path_of[picture])), step=12)
        np.testing.assert_array_equal(descriptors[(places == place).all(axis=1)], [descriptor])


def test_one_job_stays_in_this_process():
    assert {process for process, _ in in_processes(process_and_threads, [(0,), (1,)], 1)} == {os.getpid()}


def test_one_job_has_one_thread_each_time_and_leaves_the_number_as_it_was():
    with threadpool_limits(2):
        before = blas_threads()  # of a library that another test loaded, it may be 1
        assert 2 in before
        for _ in range(2):
            assert list(in_processes(blas_threads, [()], 1)) == [{1}]
            assert blas_threads() == before


def test_a_library_loaded_between_two_calls_has_one_thread_too(tmp_path):
    library = next(library["filepath"] for library in threadpool_info() if library["user_api"] == "blas")
    list(in_processes(blas_threads, [()], 1))
    ctypes.CDLL(shutil.copy(library, tmp_path))
    with threadpool_limits(2):
        assert list(in_processes(blas_threads, [()], 1)) == [{1}]


def test_jobs_run_in_other_processes_with_one_thread_each():
    found = list(in_processes(process_and_threads, [(k,) for k in range(6)], 2))
    assert os.getpid() not in {process for process, _ in found}
    assert {threads for _, threads in found} == {"1"}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_answers_come_in_the_order_of_the_calls(n_jobs):
    assert list(in_processes(double, [(k,) for k in range(20)], n_jobs)) == list(range(0, 40, 2))
