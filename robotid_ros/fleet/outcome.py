# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What came of a recording: its result, or the reason why there is none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from robotid_ros.errors import RobotIdError
from robotid_ros.files import output_folder, write_text
from robotid_ros.fleet.entry import Entry
from robotid_ros.fleet.succession import Finding
from robotid_ros.identification import IdentificationResult
from robotid_ros.reading import read_yaml

_MARK = 'fleet.yaml'  # written last: where it stands, everything else does


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a recording: a result, or the problem why there is none.

    ``urdf`` is the calibrated description, for an arm from a URDF; ``seconds`` is the processor time it took.
    ``finding`` says how well the arm's previous result predicts the recording; None for the first.
    """

    entry: Entry
    result: IdentificationResult | None
    problem: str = ''
    urdf: str | None = None
    seconds: float = 0.0
    finding: Finding | None = None

    @property
    def usable(self) -> bool:
        """Whether there is a result, and it is usable."""
        return self.result is not None and self.result.usable

    @property
    def state(self) -> str:
        """'usable', 'not usable' or 'failed'."""
        return 'failed' if self.result is None else 'usable' if self.result.usable else 'not usable'

    @property
    def reason(self) -> str:
        """Why it failed, why it is not usable, or what to know about it."""
        return self.problem if self.result is None else self.result.reason


def keep(outcome: Outcome, folder: Path, key: str) -> None:
    """Write an outcome: result.yaml and calibrated.urdf where there is a result, and last that it is finished."""
    place = output_folder(folder / outcome.entry.folder)
    for half in place.glob('.*.part'):  # left by a run that was killed; nobody else writes here
        half.unlink()
    if outcome.result is not None:
        outcome.result.save(place / 'result.yaml')
        if outcome.urdf is not None:
            write_text(place / 'calibrated.urdf', outcome.urdf)
    mark = {'key': key, 'state': outcome.state, 'problem': outcome.problem, 'seconds': round(outcome.seconds, 3)}
    write_text(place / _MARK, yaml.safe_dump(mark, sort_keys=False, allow_unicode=True))


def kept(entry: Entry, folder: Path, key: str) -> Outcome | None:
    """Return the result of an earlier run, or None where there is none, or the recording or a setting has changed."""
    place = folder / entry.folder
    if not (place / _MARK).is_file():
        return None
    try:
        mark: dict[str, Any] = read_yaml(place / _MARK, 'outcome', RobotIdError)
        if mark['key'] != key or mark['state'] == 'failed':
            return None
        result = IdentificationResult.load(place / 'result.yaml')
        return Outcome(entry=entry, result=result, seconds=float(mark['seconds']))
    except (RobotIdError, KeyError, TypeError, ValueError):  # damaged: identified once more
        return None
