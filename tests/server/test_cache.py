import threading

from pictopic.server.cache import LRUCache


def test_the_longest_unused_goes_first():
    kept, made = LRUCache(2, 100, len), []
    for key in ("a", "b", "a", "c", "a", "b"):
        kept.get(key, lambda key=key: made.append(key) or b"x")
    assert made == ["a", "b", "c", "b"]
    assert len(kept) == 2


def test_together_they_have_at_most_so_many_bytes():
    kept = LRUCache(100, 25, len)
    for key in range(10):
        assert kept.get(key, lambda: b"x" * 10) == b"x" * 10
    assert len(kept) == 2
    assert kept.get("large", lambda: b"x" * 30) == b"x" * 30
    assert len(kept) == 0


def test_what_cannot_be_made_is_not_kept():
    kept, errors = LRUCache(2, 100, len), []

    def fail():
        raise ValueError("no")

    for make in (fail, fail, lambda: b"x"):
        try:
            kept.get("a", make)
        except ValueError as error:
            errors.append(error)
    assert len(errors) == 2
    assert kept.get("a", fail) == b"x"


def test_whoever_makes_something_does_not_let_others_wait():
    kept, go_on, done = LRUCache(4, 100, len), threading.Event(), threading.Event()
    slow = threading.Thread(target=lambda: kept.get("slow", lambda: (done.wait(10) and go_on.set()) or b"x"))
    slow.start()
    assert kept.get("quick", lambda: b"y") == b"y"
    done.set()
    slow.join()
    assert go_on.is_set()
