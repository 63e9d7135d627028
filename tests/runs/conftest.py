"""The fixtures of the small cohort."""

from tests.small_cohort import cohort, full, mixed

__all__ = ["cohort", "full", "mixed"]
