# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Cards of identified arms, to share and to compare: what the arm was, what it was identified from, and its numbers.

A card holds a result, so that whatever reads a result reads a card. Paths and commands of the machine it was made on
are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.errors import IdentificationError
from robotid_ros.identification.result import CARD_FORMAT, IdentificationResult

STATED = {
    'arm': 'maker and type',
    'serial': 'serial number, or the class of it',
    'firmware': 'of the controller',
    'payload': 'what was mounted',
    'source': 'where the recordings are published',
    'terms': 'licence of the recordings, as their publisher states it',
    'conversion': 'what was done to what is published',
    'licence': 'of these numbers',
    'reproduce': 'the command that makes them',
}
"""What a result does not know and its owner may say, each with what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An identified arm with its origin."""

    result: IdentificationResult  # without paths
    stated: Mapping[str, str]  # what its owner says, see :data:`STATED`
    # file name, SHA-256, seconds and use (training, validation, test) of each
    recordings: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, result: IdentificationResult, stated: Mapping[str, str]) -> 'Card':
        """Return the card of a result; what its owner does not say is left out.

        Raises an IdentificationError if something else is said than :data:`STATED` has.
        """
        unknown = [name for name in stated if name not in STATED]
        if unknown:
            raise IdentificationError(f"a card has no '{unknown[0]}'; it has: {', '.join(STATED)}")
        recordings = []
        for use in ('training', 'validation', 'test'):
            for each in result.provenance.get(use, ()):
                source = each.get('recording', {})
                rate = float(each.get('rate', 0.0))
                recordings.append(
                    {
                        'file': Path(str(source.get('file', 'unknown'))).name,
                        'sha256': source.get('sha256', 'unknown'),
                        'use': use,
                        'seconds': round(float(each.get('samples', 0)) / rate, 2) if rate > 0.0 else 0.0,
                    }
                )
        leant = tuple(each for each in result.decisions if each.subject == 'prior')
        bare = replace(result, decisions=leant, provenance={})
        kept = {name: text for name, text in stated.items() if text}
        return cls(result=bare, stated=kept, recordings=tuple(recordings))

    @property
    def judged(self) -> str:
        """The data that the figures are from: the most distant there is."""
        return next(name for name in ('test', 'validation', 'held_out', 'training') if name in self.result.metrics)

    @property
    def known(self) -> float:
        """Median relative deviation of the essential base parameters [%]."""
        essential = np.array(self.result.base_essential, dtype=bool)
        relative = self.result.base_relative_std[essential if essential.any() else slice(None)]
        return float(np.median(relative))

    def to_yaml(self) -> str:
        """Return the text of card.yaml."""
        result = self.result
        content = {
            'format': CARD_FORMAT,
            **self.stated,
            'robot': result.robot,
            'joints': list(result.joint_names),
            'usable': result.usable,
            'judged_by': self.judged,
            'error': float(result.metrics[self.judged].relative_error_total),
            'error_by_joint': dict(
                zip(result.joint_names, result.metrics[self.judged].relative_error.tolist(), strict=True)
            ),
            'parameters': len(result.base_values),
            'median_deviation': self.known,
            'condition_number': float(result.condition_scaled),
            'recordings': [dict(each) for each in self.recordings],
            'result': yaml.safe_load(result.to_yaml()),
        }
        return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))

    def to_markdown(self) -> str:
        """Return the text of the page."""
        result, metrics = self.result, self.result.metrics[self.judged]
        lines = [f'# {self.stated.get("arm", result.robot)}', '']
        lines += [f'- {name}: {text}' for name, text in self.stated.items() if name != 'arm']
        lines += [
            f'- joints: {", ".join(result.joint_names)}',
            f'- {"usable" if result.usable else "not usable"}{": " if result.reason else ""}{result.reason}',
            f'- {len(result.base_values)} base parameters, half of the essential ones known to {self.known:.2g} %',
            f'- friction: {result.friction.name}',
        ]
        lines += [f'- {each}' for each in result.decisions]
        lines += [
            '',
            f'| joint | error of {self.judged.replace("_", "-")} torque [%] | rms [N m or N] |',
            '|---|---|---|',
        ]
        rows = zip(result.joint_names, metrics.relative_error, metrics.rmse, strict=True)
        lines += [f'| {joint} | {error:.1f} | {rmse:.3g} |' for joint, error, rmse in rows]
        lines += [f'| all | {metrics.relative_error_total:.1f} | |', '']
        if self.judged == 'training':
            lines += ['No torque was held out: these are the errors of the data it was identified from.', '']
        lines += ['| good for | | |', '|---|---|---|']
        lines += [f'| {use.name} | {"yes" if use.good else "no"} | {use.text} |' for use in result.good_for]
        lines += ['', '| recording | use | seconds | SHA-256 |', '|---|---|---|---|']
        lines += [
            f'| {each["file"]} | {each["use"]} | {each["seconds"]:g} | {_hash(each["sha256"])} |'
            for each in self.recordings
        ]
        return '\n'.join((*lines, ''))


def _hash(value: Any) -> str:
    """Return the hash of a file, or those of the files of a bag."""
    return ', '.join(map(str, value.values())) if isinstance(value, Mapping) else str(value)
