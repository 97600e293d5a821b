"""What a rehearsal on another Spark says about the way back."""

from headrace_jobs.harness.spark_line import way_back

SAME = {"offsets": 1, "commits": 2}


def test_the_same_spark_says_nothing() -> None:
    assert way_back({"4.2"}, "4.2", {"q": (SAME, SAME)}) is None
    assert way_back(set(), "4.3", {}) is None, "nobody noted what ran before"


def test_the_same_formats_go_back_forward() -> None:
    told = way_back({"4.2"}, "4.3", {"q": (SAME, SAME)})
    assert (
        told == "Spark 4.2 → 4.3: its logs have the formats that 4.2 wrote, so a rollback goes on from them"
    )


def test_a_newer_format_is_one_way() -> None:
    told = way_back({"4.2"}, "4.3", {"q": (SAME, {"offsets": 1, "commits": 3}), "r": (SAME, SAME)})
    assert told is not None
    assert told.startswith("Spark 4.2 → 4.3, ONE WAY: it writes what 4.2 cannot read (query q: commits v3).")
    assert "under a new lineage" in told
