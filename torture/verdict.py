"""Verdict: what an attack counted and what it found; where what made a finding is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

KEPT = Path("results") / "torture"


@dataclass
class Verdict:
    """What a part of the torture counted, and each finding in a sentence."""

    figures: str
    findings: list[str] = field(default_factory=list)

    def line(self, part: str) -> str:
        """Return the closing line of a part."""
        told = f"{len(self.findings)} findings" if self.findings else "nothing found"
        return f"{part}: {self.figures}; {told}"


def keep(name: str, data: bytes) -> Path:
    """Keep what made a finding, under a name that the same finding has again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    path = KEPT / f"{plain}-{sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path
