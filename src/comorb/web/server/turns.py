"""Turns: runs that wait, taken from each user in turn, so that nobody's many come before one."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque


class Turns:
    """Keys that wait; one thread takes them, the oldest of each user in turn."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, deque[str]] = OrderedDict()
        self._closed = False

    def put(self, user: str, key: str) -> None:
        """Let a key of a user wait."""
        with self._changed:
            self._waiting.setdefault(user, deque()).append(key)
            self._changed.notify()

    def get(self) -> str | None:
        """Return the key whose turn it is, when there is one; None once nothing is taken any more.

        A user with more to come goes to the end.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            user, keys = self._waiting.popitem(last=False)
            key = keys.popleft()
            if keys:
                self._waiting[user] = keys
            return key

    def before(self, key: str) -> list[str]:
        """Return the keys that are taken before one that waits, in their order."""
        with self._changed:
            waiting = deque((user, deque(keys)) for user, keys in self._waiting.items())
        earlier: list[str] = []
        while waiting:
            user, keys = waiting.popleft()
            first = keys.popleft()
            if first == key:
                return earlier
            earlier.append(first)
            if keys:
                waiting.append((user, keys))
        return []

    def close(self) -> None:
        """Take nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
