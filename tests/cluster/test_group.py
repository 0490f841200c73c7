import pytest
import torch
from torch import distributed

from pictopic.cluster.group import ProcessGroup
from tests.support.commands import FORKS


def take_part(folder, rank, size, queue):
    """Add up tensors and agree with the other processes."""
    store = distributed.FileStore(f"{folder}/store", size)
    distributed.init_process_group("gloo", rank=rank, world_size=size, store=store)
    group = ProcessGroup()
    tensors = [torch.full((2, 3), rank + 1.0), torch.tensor([10.0 * rank])]
    group.add(tensors)
    decided = group.agree(lambda: {"from": rank})
    queue.put((group.rank, group.size, [tensor.tolist() for tensor in tensors], decided))
    distributed.destroy_process_group()


@pytest.mark.parametrize("size", [1, 2])
def test_processes_get_the_sums_and_what_the_first_decides(tmp_path, size):
    queue = FORKS.Queue()
    processes = [FORKS.Process(target=take_part, args=(str(tmp_path), rank, size, queue)) for rank in range(size)]
    for process in processes:
        process.start()
    answers = sorted(queue.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * size
    first, second = sum(range(1, size + 1)), 10.0 * sum(range(size))
    sums = [[[first] * 3] * 2, [second]]
    assert answers == [(rank, size, sums, {"from": 0}) for rank in range(size)]
