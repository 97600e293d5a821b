"""Good and bad manifests, for every tier that judges manifests: the models, the fixes, a real API server.

The cases are in tests/manifest_cases/. A bad manifest differs from a good one in one thing.
"""

from __future__ import annotations

from tests.manifest_cases.bad_fields import BAD_FIELDS
from tests.manifest_cases.bad_forms import BAD_FORMS
from tests.manifest_cases.bad_frames import BAD_FRAMES
from tests.manifest_cases.bad_rules import BAD_RULES
from tests.manifest_cases.builders import Bad, BadEdit, BadText, Manifest, a_job, a_savepoint
from tests.manifest_cases.edits import BAD_EDITS, GOOD_EDITS
from tests.manifest_cases.good import DESIGN_SAMPLE, GOOD
from tests.manifest_cases.texts import BAD_TEXTS, GOOD_TEXT

BAD: tuple[Bad, ...] = (*BAD_FRAMES, *BAD_FIELDS, *BAD_FORMS, *BAD_RULES)

__all__ = [
    "BAD",
    "BAD_EDITS",
    "BAD_TEXTS",
    "DESIGN_SAMPLE",
    "GOOD",
    "GOOD_EDITS",
    "GOOD_TEXT",
    "Bad",
    "BadEdit",
    "BadText",
    "Manifest",
    "a_job",
    "a_savepoint",
]
