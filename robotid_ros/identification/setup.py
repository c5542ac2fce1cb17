# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.
"""The set-up of a recording: from recorded coordinates to those of the description, and all that may differ.

Each function here returns set-ups that are one difference away from one that holds, with the finding that says so:
gravity in another direction, where none is described, or missing in the efforts; joints of which axis, torque or
position is reversed, or the zero is another; joints whose columns are exchanged; motors that are coupled, in their
friction, their efforts or their positions; efforts each in a unit of its own, or positions in another than rad or m.
Which of them is true, the search asks (:mod:`robotid_ros.identification.setup_search`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from robotid_ros.arrays import Array, frozen_array, plain
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import IdentificationError
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.reading import read_bool

LEAST_TILT = np.radians(4.0)  # a smaller tilt is within what calibration and mounting leave
_RATIOS = (1.0, -1.0, 0.5, -0.5)  # of coupled motors, to be ranked
RATIO_BOUNDS = (0.1, 4.0)  # of the sizes of such ratios, to be found
POSITION_UNITS = (('degrees', 'revolute', np.pi / 180.0), ('turns', 'revolute', 2.0 * np.pi), ('mm', 'prismatic', 1e-3))
LEAST_FACTOR = 1.5  # between two joints: constants of torque and gear are known better, currents differ more
SAY = (
    'say what they are in the configuration (effort, torque_constants, gear_ratios), and name columns of currents in a '
    'CSV current/JOINT'
)


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
        self, kind: str, joints: Sequence[str], text: str, remedy: str, *, undone: bool = True, **changes: Any
    ) -> 'SetUp':
        """Return the set-up with one finding more, and what that changes."""
        finding = Finding(kind=kind, joints=tuple(joints), text=text, remedy=remedy, undone=undone)
        return replace(self, findings=(*self.findings, finding), **changes)

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


def along_axes(gravity: Array) -> list[Array]:
    """Return gravity of the same size along each axis, either way."""
    return [float(np.linalg.norm(gravity)) * sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]


def whole(gravity: Array) -> Array:
    """Return the axis that a direction of gravity is near, or the direction."""
    nearest = max(along_axes(gravity), key=lambda axis: float(axis @ gravity))
    return nearest if nearest @ gravity > np.cos(LEAST_TILT) * (gravity @ gravity) else gravity


def mounted(setup: SetUp, gravity: Array, described: Array) -> SetUp:
    """Return the set-up under another gravity than that of the description; either may be none."""
    size, expected = (float(np.linalg.norm(each)) for each in (gravity, described))
    along = ', '.join(f'{x:.3g}' for x in gravity / max(size, 1e-300) + 0.0)
    remedy = f'set gravity: [{", ".join(f"{x:.4g}" for x in gravity)}] in the configuration'
    if size == 0.0:
        text = (
            'the efforts hold no gravity, and do hold what motion needs: the driver takes gravity out before it tells '
            'them, or counterweights bear the arm'
        )
        remedy = (
            'the model predicts what the driver tells: before a controller is fed by it, find out whether the driver '
            f'adds the weight, or record the whole torque of the motors; where the arm is balanced, {remedy}'
        )
    elif expected == 0.0:
        text = f'gravity acts along [{along}] of the base frame, where the description has none'
    else:
        angle = np.degrees(np.arccos(np.clip(gravity @ described / (size * expected), -1.0, 1.0)))
        text = (
            f'gravity acts along [{along}] of the base frame, {angle:.0f} degrees from the description: the arm is '
            'mounted on a tilted base, a wall or a ceiling'
        )
        remedy += ', or turn the base in the description'
    others = tuple(each for each in setup.findings if each.kind != 'gravity')
    return replace(setup, findings=others).found('gravity', (), text, remedy, gravity=gravity)


_REVERSED = {
    'torque': (
        'the torque of {} has the wrong sign: it is reversed',
        'turn the sign of its torque, or of its torque constant',
    ),
    'position': (
        'the position of {} is reversed: it counts against its axis in the description',
        'turn the sign of its position, or its axis in the description together with its torque',
    ),
    'axis': (
        'the axis of {} is reversed: position and torque count against the description',
        'turn its axis in the description, or the signs of its position and torque',
    ),
}


def reversed_alike(setup: SetUp, model: RobotModel, kind: str, joints: Sequence[int]) -> SetUp:
    """Return the set-up in which some joints are reversed alike."""
    text, remedy = _REVERSED[kind]
    names = tuple(model.joint_names[j] for j in joints)
    listed = names[0] if len(names) == 1 else f'each of {", ".join(names)}'
    turn = np.ones((model.n, 1))
    turn[list(joints)] = -1.0
    return setup.found(
        kind,
        names,
        text.format(listed),
        remedy,
        position=setup.position if kind == 'torque' else turn * setup.position,
        zero=setup.zero if kind == 'torque' else turn[:, 0] * setup.zero,
        torque=setup.torque if kind == 'position' else turn * setup.torque,
    )


def count_reversed(setup: SetUp) -> int:
    """Return how many joints are reversed, or 1 where fewer are."""
    return max(1, sum(len(each.joints) for each in setup.findings if each.kind in _REVERSED))


def joints_left(setup: SetUp, model: RobotModel) -> list[int]:
    """Return the joints of whose own signs and zero nothing was found."""
    found = {joint for each in setup.findings if each.kind in (*_REVERSED, 'zero') for joint in each.joints}
    return [j for j, joint in enumerate(model.joint_names) if joint not in found]


def reversals(setup: SetUp, model: RobotModel) -> Iterator[SetUp]:
    """Yield the set-ups in which one more joint is reversed, in torque, position or both."""
    for j in joints_left(setup, model):
        for kind in _REVERSED:
            yield reversed_alike(setup, model, kind, [j])


def zeros(setup: SetUp, model: RobotModel) -> Iterator[SetUp]:
    """Yield the set-ups in which a turning joint counts from another quarter of a turn."""
    free = joints_left(setup, model)
    for j, joint in enumerate(model.joint_names):
        if model.joint_types[j] != 'revolute' or j not in free:
            continue
        for degrees in (90, -90, 180):
            zero = np.array(setup.zero)
            zero[j] += np.radians(degrees)
            text = f'the zero position of {joint} is not that of the description: {degrees:+d} degrees are missing'
            remedy = f'add {np.radians(degrees):.6g} rad to its positions, or turn its joint frame in the description'
            yield setup.found('zero', [joint], text, remedy, zero=zero)


def exchanges(setup: SetUp, model: RobotModel) -> Iterator[SetUp]:
    """Yield the set-ups in which the columns of two joints, or of their torques, are exchanged."""
    for pair in combinations(range(model.n), 2):
        if model.joint_types[pair[0]] != model.joint_types[pair[1]]:
            continue
        order = np.arange(model.n)
        order[list(pair)] = pair[::-1]
        names = tuple(model.joint_names[j] for j in pair)
        for what in ('torques', 'positions and torques'):
            text = f'the {what} of {" and ".join(names)} are exchanged'
            remedy = 'name them in the order in which the driver tells them'
            found = setup.found('order', names, text, remedy, torque=setup.torque[:, order])
            if what != 'torques':
                found = replace(found, position=setup.position[:, order])
            yield found


def couplings(setup: SetUp, model: RobotModel) -> Iterator[SetUp]:
    """Yield the set-ups in which efforts are of the other end of stated drives, or two neighbours are coupled."""
    eye = np.eye(model.n)
    if model.has_coupled_drives and np.array_equal(setup.torque, model.effort_map):
        involved = (model.drives != eye).any(axis=1) | (model.drives != eye).any(axis=0)
        names = tuple(np.array(model.joint_names)[involved].tolist())
        other: Literal['joints', 'motors'] = 'joints' if model.effort_at == 'motors' else 'motors'
        whose = {'joints': 'these joints', 'motors': 'their coupled motors'}[other]
        text = f'the efforts of {", ".join(names)} are those of {whose}, and the positions those of the joints'
        turned = replace(model, effort_at=other).effort_map
        yield setup.found('coordinates', names, text, f'set effort_at: {other} beside drives', torque=turned)
    for k in range(1, model.n):  # two neighbours that turn, and are not coupled yet
        if model.joint_types[k - 1 : k + 1] == ('revolute', 'revolute') and setup.drives[k, k - 1] == 0.0:
            for ratio in _RATIOS:
                yield from coupled(setup, model, k, ratio)


def coupled(setup: SetUp, model: RobotModel, k: int, ratio: float) -> list[SetUp]:
    """Return the set-ups in which the motor of a joint turns with so much of the joint before it too."""
    pair = model.joint_names[k], model.joint_names[k - 1]
    turn = np.eye(model.n)
    turn[k, k - 1] = ratio
    drives = setup.drives + turn - np.eye(model.n)  # each pair is an entry of its own, in whatever order they are found
    name = f'{pair[0]} {"+" if ratio > 0.0 else "-"} {"" if abs(ratio) == 1.0 else f"{abs(ratio):.3g} "}{pair[1]}'
    remedy = f'set drives: {{{pair[0]}: {{{pair[1]}: {ratio:.3g}}}}} in the configuration'
    back = np.linalg.inv(turn)
    rubs = f'the drives of {pair[0]} and {pair[1]} are coupled: the motor of {pair[0]} turns with {name}'
    efforts = (
        'the efforts are those of coupled motors, and the positions those of the joints: that of '
        f'{pair[0]} turns with {name}'
    )
    torque = drives.T @ np.linalg.inv(setup.drives).T @ setup.torque
    joint = setup.found(
        'coordinates',
        pair,
        f'the positions and torques of {pair[0]} are those of a coupled motor, which turns with {name}',
        'record joint coordinates: position of the motor minus that of the joint it turns with',
        position=back @ setup.position,
        zero=back @ setup.zero,
        torque=turn.T @ setup.torque,
    )
    return [
        setup.found('drives', pair, rubs, remedy, drives=drives),
        setup.found('coordinates', pair, efforts, f'{remedy}, and effort_at: motors', torque=torque, drives=drives),
        replace(joint, drives=turn @ setup.drives),  # friction at the coupled motors
        joint,  # or at the joints
    ]


def coupling_of(setup: SetUp, found: SetUp, model: RobotModel) -> tuple[int, int, float] | None:
    """Return the joint, the number among :func:`coupled`, and the ratio of a coupling; None for what is none."""
    joints = found.findings[-1].joints
    for k in (k for k in range(1, model.n) if model.joint_names[k - 1 : k + 1][::-1] == joints):
        for ratio in _RATIOS:
            for number, each in enumerate(coupled(setup, model, k, ratio)):
                if each.findings == found.findings and np.array_equal(each.drives, found.drives):
                    return k, number, ratio
    return None


def position_units(setup: SetUp, model: RobotModel) -> Iterator[SetUp]:
    """Yield the set-ups in which the positions of joints that turn, or slide, are in another unit than rad, or m."""
    for unit, joint_type, factor in POSITION_UNITS:
        those = np.array(model.joint_types) == joint_type
        names = tuple(np.array(model.joint_names)[those].tolist())
        if names and not any(each.kind == 'position units' and each.joints == names for each in setup.findings):
            expected = 'rad' if joint_type == 'revolute' else 'm'
            text = f'the positions of {", ".join(names)} are in {unit}: expected {expected}'
            position = setup.position * np.where(those, factor, 1.0)
            yield setup.found('position units', names, text, 'convert positions and velocities', position=position)


def several_units(setup: SetUp, model: RobotModel, factors: Array) -> SetUp:
    """Return the set-up in which recorded efforts times ``factors``, shape (n,), are torques in one unit, unknown."""
    listed = ', '.join(f'{name} {k:.2g}' for name, k in zip(model.joint_names, factors, strict=True))
    text = (
        'the efforts of the joints are not torques in one unit: bodies explain them with a factor for each joint that '
        f'acts on another ({listed}), so they may be currents, or torques of motors before their gears, or a constant '
        'is wrong, or the arm differs otherwise from its description'
    )
    return setup.found('units', model.joint_names, text, SAY, undone=False, torque=setup.torque * factors)
