# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.
"""The set-up of a recording: from recorded coordinates to those of the description, and what was found to differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array, plain
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import IdentificationError
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.reading import read_bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One way in which the recording differs from the description.

    Attributes
    ----------
    kind : str
        'gravity', 'axis', 'position', 'torque', 'zero', 'order', 'drives', 'coordinates', 'units', 'position units',
        'change' or 'magnitude'.
    joints : tuple of str
    text : str
        What was found.
    remedy : str
        What the user may change so that a second run states it.
    undone : bool
        Whether the result takes it into account; otherwise it cannot be used.
    """

    kind: str
    joints: tuple[str, ...]
    text: str
    remedy: str
    undone: bool = True

    @property
    def about(self) -> tuple[str, tuple[str, ...]]:
        """Kind and joints: two findings that share them say the same."""
        return self.kind, self.joints

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> 'Finding':
        """Return a finding from its plain values."""
        joints = tuple(str(name) for name in data['joints'])
        texts = {key: str(data[key]) for key in ('kind', 'text', 'remedy')}
        return cls(joints=joints, undone=read_bool(data, 'undone'), **texts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetUp:
    """From recorded coordinates to those of the description.

    Attributes
    ----------
    gravity : ndarray, shape (3,)
        In the base frame [m/s^2].
    position : ndarray, shape (n, n)
        P, of positions, velocities and accelerations.
    zero : ndarray, shape (n,)
        z, added to the positions [rad or m].
    torque : ndarray, shape (n, n)
        T, of torques.
    drives : ndarray, shape (n, n)
        D: motors over the joints of the description.
    findings : tuple of Finding
    doubt : Finding or None
        What the recording speaks for too, but not enough to be taken for true; it is told, and changes nothing.
    """

    gravity: Array
    position: Array
    zero: Array
    torque: Array
    drives: Array
    findings: tuple[Finding, ...] = ()
    doubt: Finding | None = None

    @classmethod
    def as_described(cls, model: RobotModel) -> 'SetUp':
        """Return the set-up in which the recording is what the description says."""
        eye = np.eye(model.n)
        torque, zero = model.effort_map, np.zeros(model.n)
        return cls(gravity=model.gravity, position=eye, zero=zero, torque=torque, drives=model.drives)

    def found(
        self, kind: str, joints: Sequence[str], text: str, remedy: str, *, undone: bool = True, **changes: Array
    ) -> 'SetUp':
        """Return the set-up with one finding more, and what that changes."""
        finding = Finding(kind=kind, joints=tuple(joints), text=text, remedy=remedy, undone=undone)
        return replace(self, findings=(*self.findings, finding), **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return '; '.join(each.text for each in self.findings) or 'as described'

    @property
    def changes_coordinates(self) -> bool:
        """Whether recorded and described coordinates differ."""
        eye = np.eye(len(self.zero))
        same = np.array_equal(self.position, eye) and np.array_equal(self.torque, eye)
        return not (same and not self.zero.any())

    @property
    def lost(self) -> bool:
        """Whether something was found that cannot be undone."""
        return not all(each.undone for each in self.findings)

    @property
    def obstacle(self) -> str:
        """Why no controller may be fed by a model of this recording, with the remedy, or nothing.

        What cannot be undone spoils the model. Where recorded coordinates differ from the description's, the model is
        right, but in the description's: a torque sent to the arm's driver would have the wrong sign or joint. What the
        configuration says of the efforts, its user knows.
        """
        lost = [f'{each.text}; {each.remedy}' for each in self.findings if not each.undone]
        turned = [each for each in self.findings if each.kind not in ('gravity', 'drives')]  # these turn no coordinates
        if lost or not (self.changes_coordinates and turned):
            return '; '.join(lost)
        return (
            f'{"; ".join(f"{each.text}; {each.remedy}" for each in self.findings)}; the model predicts this recording, '
            'but in the coordinates of the description, which are not those of the driver: mend this at its source and '
            'identify again'
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each thing that was found and undone, or is doubtful, with what to do about it."""
        found = tuple(f'set-up: {each.text}; {each.remedy}' for each in self.findings if each.undone)
        if self.doubt is None:
            return found
        said = f'set-up, not certain: {self.doubt.text}; look at the arm, and if it is so, {self.doubt.remedy}'
        return (*found, said)

    def model(self, described: RobotModel) -> RobotModel:
        """Return the description as it stands and is driven."""
        return replace(described, gravity=self.gravity, drives=self.drives)

    def dataset(self, dataset: Dataset, joint_names: Sequence[str]) -> Dataset:
        """Return a recording in the coordinates of the description; other joints stay as they are."""
        if not self.changes_coordinates:
            return dataset
        where = [dataset.joint_names.index(name) for name in joint_names]

        def mapped(values: Array, matrix: Array, shift: Array | None = None) -> Array:
            result = np.array(values)
            result[:, where] = values[:, where] @ matrix.T + (0.0 if shift is None else shift)
            return result

        even = dataset.unfiltered
        if even is not None:
            runs = tuple(
                replace(
                    run,
                    position=mapped(run.position, self.position, self.zero),
                    effort=None if run.effort is None else mapped(run.effort, self.torque),
                )
                for run in even.runs
            )
            even = replace(even, runs=runs)
        return replace(
            dataset,
            q=mapped(dataset.q, self.position, self.zero),
            dq=mapped(dataset.dq, self.position),
            ddq=mapped(dataset.ddq, self.position),
            tau=mapped(dataset.tau, self.torque),
            tau_filtered=mapped(dataset.tau_filtered, self.torque),
            unfiltered=even,
        )

    def state(self, position: Array, velocity: Array, torque: Array) -> Array:
        """Return one recorded joint state in the coordinates of the description, shape (3, n)."""
        return np.stack([self.position @ position + self.zero, self.position @ velocity, self.torque @ torque])

    def efforts(self, torque: Array) -> Array:
        """Return torques of the description, shape (N, n), as the driver tells and takes them."""
        return np.asarray(torque @ np.linalg.inv(self.torque).T)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n: int) -> 'SetUp':
        """Return the set-up of n joints that :meth:`to_dict` wrote.

        Raises
        ------
        IdentificationError
            If an array has another shape.
        """
        shapes = {'gravity': (3,), 'position': (n, n), 'zero': (n,), 'torque': (n, n), 'drives': (n, n)}
        arrays = {
            key: frozen_array(data[key], f'set-up: {key}', shape, IdentificationError) for key, shape in shapes.items()
        }
        findings = tuple(Finding.from_dict(each) for each in data['findings'])
        doubt = None if data.get('doubt') is None else Finding.from_dict(data['doubt'])
        return cls(findings=findings, doubt=doubt, **arrays)
