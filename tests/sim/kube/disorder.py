"""The order in which a watch tells its news: the right one, or any: late, twice, long after the fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.sim.kube.fake_api import Object

News = tuple[bool, str, Object]  # deleted or not, plural, object
_OLD_NEWS = 3


@dataclass
class Disorder:
    # None: everything once, in the order in which it happened.
    chance: Random | None = None
    # What each listener is told only the next time, or later.
    late: dict[int, list[News]] = field(default_factory=dict)

    def told(self, listener: int, fresh: Sequence[News], *, past: Sequence[News]) -> list[News]:
        news = [*self.late.pop(listener, ()), *fresh]
        if self.chance is None:
            return news
        late, now = list[News](), list[News]()
        for one in news:
            (late if self.chance.random() < 0.3 else now).append(one)
        again = [one for one in now if self.chance.random() < 0.3]
        old = self.chance.sample(past, min(len(past), _OLD_NEWS))
        self.late[listener] = late
        # Old news: as after a connection that was made anew from an earlier version.
        mixed = [*now, *again, *old]
        self.chance.shuffle(mixed)
        return mixed
