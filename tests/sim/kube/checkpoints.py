"""The job's checkpoints as its drivers and keepers find them: state, claims, and who has copied what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from headrace_jobs.store import seed_after_trial, seed_run
from tests.sim.kube.fake_api import Object
from tests.sim.stream import Stream


@dataclass
class Checkpoints:
    stream: Stream = field(default_factory=Stream)
    # Who has claimed a run in the store: run -> the newest attempt.
    claims: dict[int, int] = field(default_factory=dict)
    # What keepers have copied: run -> the path that it begins from.
    seeds: dict[int, str] = field(default_factory=dict)
    # What candidates have copied: run -> the run before.
    copies: dict[int, int] = field(default_factory=dict)
    # What a job of the same name has left there.
    earlier: Object | None = None
    # What keepers of deleted jobs have removed, by the flags that they were given.
    removed: list[str] = field(default_factory=list)
    # Why nothing can be copied, and why nothing can be removed.
    seed_fails: str | None = None
    deletion_fails: str | None = None

    def seed(self, command: list[str]) -> Object:
        """What the keeper would do, with the keeper's own code."""
        flags = dict(flag.removeprefix("--").split("=", 1) for flag in command if "=" in flag)
        source, target = (flags[name].rpartition("/")[2] for name in ("from", "to"))
        self.seeds[int(target.removeprefix("run-"))] = flags["from"]
        if "rollback" not in command:
            return asdict(seed_run(self.stream.store, source, target))
        incumbent = flags["incumbent"].rpartition("/")[2]
        return asdict(
            seed_after_trial(
                self.stream.store,
                incumbent=incumbent,
                candidate=source,
                to_run=target,
                rewind="--rewind" in command,
            )
        )

    def copy(self, *, source: int, run: int) -> None:
        """As a candidate does it that takes over."""
        seed_run(self.stream.store, f"run-{source}", f"run-{run}")
        self.copies[run] = source

    def claim(self, run: int, attempt: int) -> bool:
        """False where another attempt has been there."""
        if self.claims.get(run, 0) >= attempt:
            return False
        self.claims[run] = attempt
        return True

    def remove(self, command: list[str]) -> None:
        self.removed.append(" ".join(flag for flag in command if flag.startswith(("--store", "--lin"))))
        self.claims.clear()
