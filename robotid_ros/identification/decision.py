# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Automatic choices, with what was compared."""

from dataclasses import dataclass

from robotid_ros.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of several possibilities, and its error on data that it was not fitted to.

    Attributes
    ----------
    name : str
    error : ndarray, shape (n,)
        Root-mean-square torque error of each joint against the torque as recorded [N m].
    """

    name: str
    error: Array

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'name': self.name, 'error': [float(f'{x:.6g}') for x in self.error]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An automatic choice with its alternatives.

    Attributes
    ----------
    subject : str
        What was chosen: 'cutoff', 'friction', ...
    chosen : str
    alternatives : tuple of Alternative
        Empty where there was nothing to compare.
    """

    subject: str
    chosen: str
    alternatives: tuple[Alternative, ...] = ()

    def __str__(self) -> str:
        return f'{self.subject}: {self.chosen}'

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            'subject': self.subject,
            'chosen': self.chosen,
            'alternatives': [each.to_dict() for each in self.alternatives],
        }
