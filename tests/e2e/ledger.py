"""The job of examples/exactly-once on a topic and tables of its own, and what became of it."""

from pathlib import Path
from typing import Any

from tests.cluster.processes import wait_until
from tests.e2e.ledger_check import Content, Noted, Row, Verdict, Window, judge
from tests.e2e.services import Services
from tests.e2e.streamjobs import a_spec, edited

EXAMPLE = Path(__file__).parents[2] / "examples/exactly-once"
JOB = (EXAMPLE / "job.py").read_text()
# The state of a window has one number more, and it is used: Spark refuses to go on from what is there.
UNFIT = edited(JOB, '.alias("total"))', '.alias("total"), F.avg("i").alias("mean"))\n    .where("mean >= 0")')
KEYS = 5
# The event time of the producer's records goes as fast as the clock.
RECORDS_PER_SECOND = 20.0
ONE_SENT_AGAIN_OF = 7


class Ledger:
    """Numbered records in, some of them twice; windows in PostgreSQL out."""

    def __init__(self, services: Services, name: str) -> None:
        self.services, self.name = services, name
        self._stop = f"/scratch/stop-{name}"
        services.create_topic(name, partitions=2)
        tables = (EXAMPLE / "tables.sql").read_text()
        services.sql(f"CREATE SCHEMA {name}; SET search_path = {name};\n{tables}")

    @property
    def connection(self) -> str:
        return f"{self.services.postgres} options='-c search_path={self.name}'"

    def args(self, *more: str) -> list[str]:
        places = ["--bootstrap", self.services.bootstrap, "--topic", self.name, "--postgres", self.connection]
        return [*places, *more]

    def spec(self, *, code: str, **more: Any) -> dict[str, Any]:
        return a_spec(self.services, code=code, args=self.args(), **more)

    # ---- the producer ----------------------------------------------------------------------------------

    def start_producer(self) -> None:
        self.services.produce_until(
            self._stop, self.name, keys=KEYS, rate=RECORDS_PER_SECOND, again=ONE_SENT_AGAIN_OF
        )

    def stop_producer(self) -> None:
        self.services.shell("kafka", f"touch {self._stop}")
        told = self._producer_says
        assert wait_until(lambda: "produced" in told(), seconds=60, every=0.5), told()

    def _producer_says(self) -> str:
        return self.services.shell("kafka", f"cat {self._stop}.log")

    # ---- the results -----------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        found = self.services.sql(f"SELECT begins_ms, key, n, total FROM {self.name}.windows")
        return [Row(Window(int(at), key), Content(int(n), int(total))) for at, key, n, total in found]

    def labels(self) -> set[str]:
        """The versions whose rows are there."""
        return {label for (label,) in self.services.sql(f"SELECT DISTINCT label FROM {self.name}.windows")}

    def noted(self) -> list[Noted]:
        """In the order they were written."""
        columns = "lineage, batch, epoch, extract(epoch FROM written_at)"
        found = self.services.sql(f"SELECT {columns} FROM {self.name}.ledger ORDER BY written_at")
        return [Noted(lineage, int(batch), int(epoch), float(at)) for lineage, batch, epoch, at in found]

    def last_batch(self) -> int:
        (newest,) = self.services.sql(f"SELECT coalesce(max(batch), -1) FROM {self.name}.ledger")
        return int(newest[0])

    def wait_exact(self, *, seconds: float = 180) -> Verdict:
        """Once the producer has stopped: nothing lost, nothing repeated."""
        records = self.services.consume(self.name)
        verdicts: list[Verdict] = []

        def exact() -> bool:
            verdicts.append(judge(records, self.rows(), self.noted()))
            return bool(verdicts[-1])

        assert wait_until(exact, seconds=seconds, every=1), "\n".join(verdicts[-1].problems[:20])
        return verdicts[-1]
