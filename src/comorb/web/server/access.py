"""Access: users by token, one-time link or cookie, and what each role may do."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from comorb.errors import InputError
from comorb.web.server.store import COMMAND_LINE, Store

ROLES = ("viewer", "analyst", "exporter")
LOCAL = "local"
COOKIE = "comorb_session"
_HOURS = 12
_NAME = re.compile(r"[\w.@-]{1,64}")
_TRIES, _MINUTE = 5, 60.0
_WORK_OF = """
SELECT 1 FROM sessions WHERE user = ?1 AND expires > ?2
UNION ALL SELECT 1 FROM data WHERE owner = ?1
UNION ALL SELECT 1 FROM runs WHERE owner = ?1
UNION ALL SELECT 1 FROM definitions WHERE owner = ?1 LIMIT 1
"""
_END_RUNS = """
UPDATE runs SET body = json_set(body, '$.state', 'cancelled')
WHERE owner = ? AND json_extract(body, '$.state') IN ('queued', 'running')
"""


@dataclass(frozen=True)
class User:
    """A user; each role of ``ROLES`` may do what those before it may."""

    name: str
    role: str
    session: str = ""  # its secret, empty for a bearer token
    language: str = "en"

    def may(self, role: str) -> bool:
        """Whether this user may do what a role may."""
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def csrf(self) -> str:
        """What a page of ours sends along with a change, and a page of others can't know."""
        return hmac.new(self.session.encode(), b"csrf", hashlib.sha256).hexdigest()


class Access:
    """Users with tokens, sessions, the one-time link, and a limit on wrong tries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._link = ""
        self._tries: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    @property
    def has_users(self) -> bool:
        """Whether anyone was given a token."""
        return bool(self._store.query("SELECT 1 FROM users LIMIT 1"))

    @property
    def is_local(self) -> bool:
        """Whether the local user works here alone: nobody has a token, and nobody ever had one."""
        return not self.has_users and not self._store.marker.had_users

    @property
    def needs_owner(self) -> bool:
        """Whether a first user would cut the local user off from a session, data or runs."""
        return not self.has_users and bool(self._store.query(_WORK_OF, LOCAL, time.time()))

    def add_user(self, name: str, role: str) -> str:
        """Add a user, or give one a new token and role; return the token, which is not kept."""
        return self.add_users({name: role})[name]

    def add_users(self, roles: Mapping[str, str], owner: str = "") -> dict[str, str]:
        """Add users by their names and roles, all or none, and return the token of each new one.

        The ``owner`` gets what the local user has: data, runs, definitions and sessions. An owner
        who isn't a user yet becomes one, with every right, as the local user had.
        """
        if owner and owner not in {name for name, _ in self.users()}:
            roles = {**roles, owner: roles.get(owner, ROLES[-1])}
            if roles[owner] != ROLES[-1]:
                raise InputError(
                    "access.owner_role", role=ROLES[-1], owner=owner, came=roles[owner]
                )
        for name, role in roles.items():
            if not _NAME.fullmatch(name) or name == LOCAL:
                raise InputError("access.name", local=LOCAL, name=name)
            if role not in ROLES:
                raise InputError("access.role", roles=ROLES, role=role)
        if self.needs_owner and not owner:
            raise InputError("access.owner")
        with self._store.transaction():
            tokens = {name: self._add(name, role) for name, role in roles.items()}
            if owner:
                self._store.query("UPDATE sessions SET user = ? WHERE user = ?", owner, LOCAL)
                self._change_owner(LOCAL, owner)
                self._store.audit(COMMAND_LINE, "hand over the local work", owner)
        with suppress(OSError):  # on a full disk; whoever opens the store next keeps it
            self._store.marker.keep(users=True)
        return tokens

    def _add(self, name: str, role: str) -> str:
        token = secrets.token_urlsafe(32)
        if self._store.query("DELETE FROM users WHERE name = ? RETURNING name", name):
            self._store.query("DELETE FROM sessions WHERE user = ?", name)
        else:
            self._close_owner(name)
        self._store.query(
            "INSERT INTO users VALUES (?, ?, ?, ?)", name, role, _hash(token), time.time()
        )
        self._store.audit(COMMAND_LINE, f"add {role}", name)
        return token

    def remove_user(self, name: str) -> bool:
        """Remove a user with all sessions, and return whether there was one.

        What was theirs stays, under a name that nobody can have again.
        """
        with self._store.transaction():
            if not self._store.query("DELETE FROM users WHERE name = ? RETURNING name", name):
                return False
            self._close_owner(name)
            self._store.audit(COMMAND_LINE, "remove user", name)
        return True

    def _close_owner(self, name: str) -> None:
        """Give what belongs to a name that is no user's to nobody, and end its runs."""
        self._store.query("DELETE FROM sessions WHERE user = ?", name)
        self._store.query(_END_RUNS, name)
        self._change_owner(name, f"{name} (removed {secrets.token_hex(4)})")

    def _change_owner(self, name: str, other: str) -> None:
        """Give all that belongs to one name to another."""
        self._store.query("UPDATE OR IGNORE questions SET user = ? WHERE user = ?", other, name)
        self._store.query("UPDATE data SET owner = ? WHERE owner = ?", other, name)
        self._store.query("UPDATE definitions SET owner = ? WHERE owner = ?", other, name)
        self._store.query("UPDATE runs SET owner = ? WHERE owner = ?", other, name)

    def users(self) -> list[tuple[str, str]]:
        """Return the name and role of each user."""
        rows = self._store.query("SELECT name, role FROM users ORDER BY name")
        return [(row["name"], row["role"]) for row in rows]

    def new_link(self) -> str:
        """Return a key that opens one session of the local user, once."""
        self._link = secrets.token_urlsafe(24)
        return self._link

    def use_link(self, key: str) -> str | None:
        """Return a session for the key of the link, which is then used up."""
        with self._lock:
            right = self._link and hmac.compare_digest(key.encode(), self._link.encode())
            if not right or not self.is_local:
                return None
            self._link = ""
        return self.open_session(LOCAL)

    def user_of_token(self, token: str) -> User | None:
        """Return the user of a token."""
        rows = self._store.query("SELECT name, role FROM users WHERE token = ?", _hash(token))
        return User(rows[0]["name"], rows[0]["role"]) if rows else None

    def open_session(self, name: str) -> str:
        """Return the secret of a new session."""
        self._store.query("DELETE FROM sessions WHERE expires < ?", time.time())
        session = secrets.token_urlsafe(32)
        expires = time.time() + 3600 * _HOURS
        self._store.query("INSERT INTO sessions VALUES (?, ?, ?)", _hash(session), name, expires)
        return session

    def user_of_session(self, session: str) -> User | None:
        """Return the user of a session; the local one only as long as there were no others."""
        rows = self._store.query(
            "SELECT user, role FROM sessions LEFT JOIN users ON name = user "
            "WHERE sessions.token = ? AND expires > ?",
            _hash(session),
            time.time(),
        )
        if not rows:
            return None
        name, role = rows[0]["user"], rows[0]["role"]
        if name == LOCAL:
            return User(LOCAL, ROLES[-1], session) if self.is_local else None
        return User(name, role, session) if role else None

    def close_session(self, session: str) -> None:
        """End a session."""
        self._store.query("DELETE FROM sessions WHERE token = ?", _hash(session))

    def too_many(self, client: str) -> bool:
        """Count a wrong try of a client, and return whether it had five within a minute before.

        A right token never has to wait: users behind one address don't lock each other out.
        """
        now = time.monotonic()
        with self._lock:
            recent = {
                one: tries for one, tries in self._tries.items() if tries[-1] >= now - _MINUTE
            }
            self._tries = recent
            tries = self._tries.setdefault(client, deque(maxlen=_TRIES))
            full = len(tries) == _TRIES and tries[0] >= now - _MINUTE
            if not full:
                tries.append(now)
            return full


def _hash(token: str) -> str:
    """Return what is stored of a token: it is random and long, so that a plain hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()
