"""The URIs of the resources, and the length of an identifier, as clients see them."""

from __future__ import annotations

from typing import Final

SETS: Final = "standards://sets"
SUBJECTS: Final = "standards://subjects"
GRADES: Final = "standards://grades"
STANDARDS: Final = "standards://standards"
MAX_CHARACTERS: Final = 512
