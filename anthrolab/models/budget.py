"""What one request may cost in attempts and seconds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """What one request may cost: attempts in all, seconds in all (waits included), seconds of one attempt.

    Between attempts it waits `first_wait`, twice that, four times that ... up to `longest_wait` seconds, or as
    long as the server's Retry-After says, if that still fits into the total.
    """

    attempts: int = 4
    seconds: float = 600.0
    attempt_seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 20.0

    def wait(self, failed: int) -> float:
        """Seconds to wait after the `failed`-th attempt (from 1). No jitter: the same failures, the same waits."""
        return float(min(self.longest_wait, self.first_wait * 2 ** (failed - 1)))
