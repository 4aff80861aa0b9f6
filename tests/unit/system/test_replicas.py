import multiprocessing
import os
import signal
import time

import psutil
import pytest
import torch

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.system import replicas
from graphormer_sepnorm.system.replicas import PART_BYTES, run_together


def summed(numbers: int, dtype: torch.dtype) -> torch.Tensor:
    """In process r: 0, 1, 2, ... times 10 ** r, summed over the processes."""
    replica = replicas.current()
    x = torch.arange(numbers, dtype=dtype) * 10**replica.rank
    replica.add_up(x)
    return x


@pytest.mark.parametrize("numbers", [0, 1, 7, PART_BYTES // 4, PART_BYTES // 4 + 3])
@pytest.mark.parametrize("size", [2, 3])
def test_sums_are_those_over_all_processes(size, numbers):
    found = run_together(size, lambda: summed(numbers, torch.float32))
    factor = {2: 11, 3: 111}[size]
    torch.testing.assert_close(found, torch.arange(numbers, dtype=torch.float32) * factor)


def test_numbers_of_other_widths_are_added_too():
    assert run_together(2, lambda: summed(3, torch.float64)).tolist() == [0.0, 11.0, 22.0]
    assert run_together(2, lambda: summed(3, torch.int64)).tolist() == [0, 11, 22]


def test_every_process_has_the_same_bits_over_many_sums():
    def bits() -> torch.Tensor:
        replica = replicas.current()
        torch.manual_seed(replica.rank)
        total = torch.zeros(50)
        for _ in range(200):
            x = torch.randn(50)
            replica.add_up(x)
            total += x
        rows = torch.zeros(replica.size, 50)
        rows[replica.rank] = total
        replica.add_up(rows)
        return rows

    rows = run_together(3, bits)
    assert torch.equal(rows[0], rows[1]) and torch.equal(rows[0], rows[2]) and rows[0].abs().sum() > 0


def test_one_process_is_this_one_as_it_is():
    threads = torch.get_num_threads()
    assert run_together(1, lambda: (replicas.current(), torch.get_num_threads())) == (None, threads)


def test_processes_compute_on_one_thread_each_and_print_once(capfd):
    def threads() -> list[float]:
        replica = replicas.current()
        print("said by", replica.rank)
        x = torch.zeros(2)
        x[replica.rank] = torch.get_num_threads()
        replica.add_up(x)
        return x.tolist()

    assert run_together(2, threads) == [1, 1]
    assert replicas.current() is None
    assert capfd.readouterr().out == "said by 0\n"


def test_the_others_are_gone_after_success_and_after_an_error():
    def fail() -> None:
        replicas.current().meet()
        if replicas.current().rank == 0:
            raise KeyError
        time.sleep(60)

    run_together(3, lambda: replicas.current().meet())
    assert multiprocessing.active_children() == []
    with pytest.raises(KeyError):
        run_together(3, fail)
    assert multiprocessing.active_children() == []


def test_an_error_that_all_meet_is_told_once(capfd):
    def refuse() -> None:
        replicas.current().meet()
        raise InputError("loss nan")

    with pytest.raises(InputError, match="loss nan"):
        run_together(3, refuse)
    assert capfd.readouterr() == ("", "")


def test_a_lost_process_is_named_with_what_ended_it(capfd):
    def meet_until_killed() -> None:
        replica = replicas.current()
        if replica.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            replica.meet()

    with pytest.raises(InputError, match=r"process 2 of 3 was killed by SIGKILL: .*--resume"):
        run_together(3, meet_until_killed)
    assert multiprocessing.active_children() == []
    assert capfd.readouterr() == ("", "")


def test_an_error_of_one_process_alone_is_shown(capfd):
    def fail() -> None:
        replica = replicas.current()
        if replica.rank == 1:
            raise KeyError("mine")
        replica.meet()

    with pytest.raises(InputError, match="process 1 of 2 ended with exit code 1"):
        run_together(2, fail)
    assert "KeyError: 'mine'" in capfd.readouterr().err


def endless(sender) -> None:
    def work() -> None:
        replica = replicas.current()
        sender.send(os.getpid())
        while True:
            replica.meet()

    run_together(3, work)


def test_the_others_end_with_a_first_process_that_is_killed():
    receiver, sender = multiprocessing.Pipe(duplex=False)
    first = multiprocessing.get_context("fork").Process(target=endless, args=(sender,))
    first.start()
    group = [psutil.Process(receiver.recv()) for _ in range(3)]
    first.kill()
    first.join()
    _, alive = psutil.wait_procs([process for process in group if process.pid != first.pid], timeout=60)
    assert alive == []


def test_signals_reach_the_first_process_alone():
    """A terminal sends SIGINT to all of them."""

    def interrupt_the_others() -> int:
        replica = replicas.current()
        if replica.rank:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
        replica.meet()
        return replica.rank

    assert run_together(3, interrupt_the_others) == 0
