"""Puts this folder on the path, so that an area's helper module imports by its plain name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
