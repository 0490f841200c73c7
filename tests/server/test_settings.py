import os

import pytest

from pictopic.server.settings import Settings, is_loopback


@pytest.mark.parametrize("token", ["", "short", "x" * 15])
def test_a_token_that_could_be_guessed_is_refused(token):
    with pytest.raises(ValueError, match=f"has {len(token)} characters"):
        Settings(token=token)


@pytest.mark.parametrize("token", [" " + "x" * 16, "x" * 16 + "\n", "x" * 16 + "\0"])
def test_a_token_that_cannot_be_sent_is_refused(token):
    with pytest.raises(ValueError, match="cannot be sent"):
        Settings(token=token)


def test_a_long_token_is_taken():
    assert Settings(token="x" * 16).token == "x" * 16


def test_by_default_there_is_a_thread_for_each_core():
    assert Settings().n_threads == os.cpu_count()
    assert Settings(threads=3).n_threads == 3


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_only_this_machine_reaches_a_loopback_address(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "localhost.example.org", ""])  # noqa: S104
def test_other_machines_may_reach_any_other_address(host):
    assert not is_loopback(host)
