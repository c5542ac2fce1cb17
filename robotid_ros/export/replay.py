# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The replay gate: the identified arm in the simulator beside the described one, on a recording."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.data import Dataset
from robotid_ros.dynamics import full_regressor, inverse_dynamics
from robotid_ros.errors import DataError
from robotid_ros.export.identified import identified_arm, without_friction
from robotid_ros.export.mjcf import mjcf_of
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.reading import read_yaml, refusing
from robotid_ros.simulation.servo import (
    MotionError,
    Servo,
    delayed,
    identify_drives,
    identify_servo,
    motion_error,
    replayed,
    windows_of,
)

# Driven by torque, errors grow with time squared: long enough for a motion to be seen above the noise of encoders.
TORQUE_WINDOW = 0.25
# Driven by servos, a few of their time constants.
SERVO_WINDOW = 2.0
READY = 10.0
"""A simulation is ready when its error is below this part of the motion [%], the 90 % match asked of torques."""
_FILTERED = 0.45  # of the rate: a bandwidth above it limits nothing that the samples could show
_NUMBERS = ('relative_total', 'delay')  # the others have one number for each joint
_ARMS = ('described', 'identified', 'whole', 'possible')


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay showed."""

    joint_names: tuple[str, ...]
    window: float  # [s]
    described: MotionError  # of the arm as it was described, and as it was identified: what the exported MJCF holds
    identified: MotionError
    # of the identified arm with all of its friction, which no MJCF holds. None where servos drive.
    whole: MotionError | None = None
    # of an arm that is the identified one, driven by its own torque as a signal of the recorded torque's bandwidth
    # shows it: no model does better with this recording. None where the bandwidth is not limited, or servos drive.
    possible: MotionError | None = None
    bandwidth: float | None = None  # that bandwidth [Hz]
    servo: Servo | None = None  # where the arm followed a command
    # the simulated arm with its servos, where it was not identified before but from this recording; empty otherwise
    mjcf: str = ''
    # what each part of the error would cause alone, see :func:`_parts`
    parts: Mapping[str, MotionError] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether the identified arm's simulation reproduces the motion."""
        return self.identified.relative_total < READY

    @property
    def undecided(self) -> bool:
        """Whether it does not, but would by a torque of unlimited bandwidth, as far as this recording shows.

        The errors of the model and of the bandwidth are taken to be independent.
        """
        if self.ready or self.possible is None:
            return False
        return self.identified.relative_total**2 - self.possible.relative_total**2 < READY**2

    @property
    def verdict(self) -> str:
        """One sentence."""
        before, after = self.described.relative_total, self.identified.relative_total
        times = f'{before / after:.1f} times better than' if before > after else 'no better than'
        word = 'ready' if self.ready else 'perhaps ready' if self.undecided else 'not ready'
        text = (
            f'{word} for simulation: the identified arm misses {_share(after)} of the motion in windows of '
            f'{self.window:g} s, the described one {_share(before)} ({times} the description; ready below {READY:g} %)'
        )
        poor = [
            f'{name} {_share(value)}'
            for name, value in zip(self.joint_names, self.identified.relative, strict=True)
            if value >= READY
        ]
        if not self.ready and 0 < len(poor) < len(self.joint_names):
            text += f'; above it are {", ".join(poor)}'
        if self.whole is not None and self.whole.relative_total < 0.9 * after:
            text += f'. With all of the identified friction (--to c) it is {_share(self.whole.relative_total)}'
        if not self.ready and self.possible is not None and self.bandwidth is not None:
            text += (
                f'. The recorded torque ends at {self.bandwidth:.2g} Hz: driven by it, an arm exactly as identified '
                f'would miss {_share(self.possible.relative_total)}. Commanded positions (--command) test it better'
            )
        if not self.ready and self.parts:
            alone = [f'{name} {_share(each.relative_total)}' for name, each in self.parts.items()]
            text += f'. Each part alone would miss: {", ".join(alone)}'
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""

        def plain(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return dict(zip(self.joint_names, value.tolist(), strict=True))
            if isinstance(value, MotionError | Servo):
                return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
            return value

        found = {
            'ready': self.ready,
            'verdict': self.verdict,
            'window': self.window,
            'torque_bandwidth': self.bandwidth,
        }
        found |= {name: plain(getattr(self, name)) for name in _ARMS}
        found['parts'] = {name: plain(each) for name, each in self.parts.items()}
        return found if self.servo is None else {**found, 'servo': plain(self.servo)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> 'Replayed':
        """Return what :meth:`to_dict` wrote.

        Raises a KeyError, TypeError, ValueError if something is missing or has another form.
        """
        joints = tuple(data['identified']['relative'])

        def values(entry: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: float(value) if name in _NUMBERS else np.array([value[joint] for joint in joints], float)
                for name, value in entry.items()
            }

        servo = data.get('servo')
        if servo is not None:
            servo = {'play': dict.fromkeys(joints, 0.0), **servo}  # of releases that did not know it
        arms: dict[str, Any] = {name: MotionError(**values(data[name])) for name in _ARMS if data[name] is not None}
        return cls(
            joint_names=joints,
            window=float(data['window']),
            bandwidth=data['torque_bandwidth'],
            servo=None if servo is None else Servo(**values(servo)),
            parts={name: MotionError(**values(each)) for name, each in data.get('parts', {}).items()},
            **arms,
        )

    @classmethod
    def load(cls, path: str | Path) -> 'Replayed':
        """Read a replay.yaml.

        Raises a DataError if it cannot be read or is none.
        """
        with refusing(f"replay '{path}'", DataError, file=str(path)):
            return cls.from_dict(read_yaml(path, 'replay', DataError))


def replay(
    model: RobotModel,
    result: IdentificationResult | None,
    dataset: Dataset,
    *,
    command: Array | None = None,
    window: float | None = None,
    has_torque: bool = True,
) -> Replayed:
    """Replay a recording with the identified and with the described arm, as :func:`mjcf_of` writes them.

    The model is the arm as described. The result is None for an arm of which only commanded and measured positions are
    known: its bodies are those of the description; friction and rotor inertia are found with its servos. The dataset
    was not identified from; torques that the identification found reversed are turned.

    ``command``, shape (N, n): commanded positions at the dataset's instants, joints in the dataset's order: the arms
    follow it by servos, identified from the first half of the samples, and the second half is replayed. By default the
    arms get the recorded torque. ``window``: see :func:`windows_of` [s]. ``has_torque``: whether the dataset's torque
    was measured. If not, servos are identified with the torque of the identified model along the motion.

    Raises a RobotIdError if the result belongs to another arm, a joint is not in the dataset, there is neither torque
    nor command, or MuJoCo is not installed.
    """
    if command is None and not has_torque:
        raise DataError('a recording without torque needs the commanded positions, through which servos drive the arm')
    if command is None and result is None:
        raise DataError('an arm that is not identified is replayed through its servos: give the commanded positions')
    predictor = None if result is None else TorquePredictor(model, result)  # refuses the result of another arm
    columns = require_names(model.joint_names, dataset.joint_names, 'joint', 'the recording', DataError)
    if predictor is not None:
        (dataset,) = predictor.in_arm_coordinates(dataset)
    recorded = dataset.of_joints(model.joint_names)
    if command is not None:
        half, rows = len(recorded) // 2, np.arange(len(recorded))
        halves = recorded.select(rows[:half]), recorded.select(rows[half:])
        seconds = SERVO_WINDOW if window is None else window
        return _by_servo(model, predictor, halves, command[:, columns], seconds, has_torque=has_torque)
    assert predictor is not None
    seconds = TORQUE_WINDOW if window is None else window
    result, windows = predictor.result, windows_of(recorded, seconds)
    arm, motion = identified_arm(model, result), (recorded.q, recorded.dq, recorded.ddq)

    def error(of: RobotModel, torque: Array) -> MotionError:
        return motion_error(recorded, replayed(mjcf_of(of), replace(recorded, tau=torque), windows), windows)

    own = inverse_dynamics(arm, *motion, rotor_inertia=True, friction=True)
    bandwidth = _bandwidth(predictor, recorded)
    of_drives = _of_drives(predictor, recorded)
    given, whole = recorded.tau - of_drives, predictor.torque(*motion) - of_drives
    parts = _parts(arm, (whole, predictor.rigid_torque(*motion)), recorded, given, bandwidth)
    parts['torque signal'] = given - own - sum(parts.values())
    return Replayed(
        joint_names=model.joint_names,
        window=seconds,
        described=error(model, recorded.tau),
        identified=error(arm, given),
        whole=error(arm, given - (whole - own)),
        possible=None if bandwidth is None else error(arm, recorded.low_passed(own, bandwidth)),
        bandwidth=bandwidth,
        parts={name: error(arm, own + part) for name, part in parts.items()},
    )


def _by_servo(
    model: RobotModel,
    predictor: TorquePredictor | None,
    halves: tuple[Dataset, Dataset],
    command: Array,
    seconds: float,
    *,
    has_torque: bool,
) -> Replayed:
    """Replay the second half along the command, with servos from the first."""
    early, recorded = halves
    windows, wanted, told = windows_of(recorded, seconds), command[len(early) :], command[: len(early)]
    arm = model if predictor is None else identified_arm(model, predictor.result)
    bias = inverse_dynamics(arm, early.q, early.dq, np.zeros_like(early.q))
    if predictor is None:
        bodies = inverse_dynamics(arm, early.q, early.dq, early.ddq, rotor_inertia=False)
        servo, gearing = identify_drives(early, told, bodies, bias)
        arm = arm.with_inertial(arm.inertial, **gearing)
    else:
        torque = early.tau_filtered if has_torque else predictor.torque(early.q, early.dq, early.ddq)
        servo = identify_servo(early, told, torque, bias)

    def error(of: RobotModel, extra: Array | None = None) -> MotionError:
        return motion_error(recorded, replayed(mjcf_of(of), recorded, windows, servo, wanted, extra), windows)

    motion = recorded.q, recorded.dq, recorded.ddq
    own = inverse_dynamics(arm, *motion, rotor_inertia=True, friction=True)
    arrives, speed = delayed(wanted, servo.delay, recorded.rate)
    bias = inverse_dynamics(arm, recorded.q, recorded.dq, np.zeros_like(recorded.q))
    along = servo.torque(arrives - recorded.q, speed - recorded.dq, bias)
    said = own, inverse_dynamics(arm, *motion, rotor_inertia=True)
    given: Array | None = along if predictor is None else None
    bandwidth = None
    if predictor is not None:
        of_drives = _of_drives(predictor, recorded)
        said = predictor.torque(*motion) - of_drives, predictor.rigid_torque(*motion)
        if has_torque:
            given, bandwidth = recorded.tau - of_drives, _bandwidth(predictor, recorded)
    parts = _parts(arm, said, recorded, given, bandwidth)
    parts['servo'] = along - own - sum(parts.values())
    return Replayed(
        joint_names=model.joint_names,
        window=seconds,
        described=error(model),
        identified=error(arm),
        servo=servo,
        mjcf=mjcf_of(arm, servo) if predictor is None else '',
        parts={name: error(arm, own - along + part) for name, part in parts.items()},
    )


def _parts(
    arm: RobotModel, identified: tuple[Array, Array], recorded: Dataset, given: Array | None, bandwidth: float | None
) -> dict[str, Array]:
    """Return by how much another friction and other bodies than the simulator's would change the driving torque.

    The torque that drives an arm along a motion differs from the simulator's own torque there by what the format leaves
    out of the identified friction and bodies, and by what the measured torque differs from the identified one. The
    latter is split by least squares: what any Coulomb and viscous friction and offset of each joint, and any bodies and
    rotors, would explain. What is left of the difference is that of the servos, or of the torque signal, its bandwidth
    included.

    The arm is as the simulator has it. ``identified``: the identified torque along the motion without that of the
    drives, and that of its bodies and rotors. ``given``: the measured torque without that of the drives; None where
    there is none. ``bandwidth``: of that torque [Hz]. The result holds ``friction`` and ``inertia``; all are of shape
    (N, n) [N m].
    """

    def seen(torque: Array) -> Array:
        return torque if bandwidth is None else recorded.low_passed(torque, bandwidth)

    motion = recorded.q, recorded.dq, recorded.ddq
    whole, rigid = identified
    bodies = inverse_dynamics(arm, *motion, rotor_inertia=True)
    dry = inverse_dynamics(arm, *motion, rotor_inertia=True, friction=True) - bodies
    friction, inertia = whole - rigid - dry, rigid - bodies
    if given is None:
        return {'friction': friction, 'inertia': inertia}
    own = np.stack([np.sign(recorded.dq), recorded.dq, np.ones_like(recorded.dq), recorded.ddq], axis=2)
    diagonal = (own[:, :, None, :] * np.eye(arm.n)[:, :, None]).reshape(len(recorded), arm.n, -1)  # joint, kind
    columns = np.concatenate([diagonal, full_regressor(arm, *motion)], axis=2)
    rows = seen(columns.reshape(len(recorded), -1)).reshape(-1, columns.shape[2])
    size = np.maximum(np.linalg.norm(rows, axis=0), np.finfo(float).tiny)
    found = np.linalg.lstsq(rows / size, (given - seen(whole)).ravel(), rcond=1e-6)[0] / size
    rubs = np.arange(columns.shape[2]) < 4 * arm.n
    rubs[3 : 4 * arm.n : 4] = False  # rotors are inertia
    return {
        'friction': friction + seen(columns[:, :, rubs] @ found[rubs]),
        'inertia': inertia + seen(columns[:, :, ~rubs] @ found[~rubs]),
    }


def _share(value: float) -> str:
    return f'{value:.0f} %' if value >= 100.0 else f'{value:.2g} %'


def _bandwidth(predictor: TorquePredictor, recorded: Dataset) -> float | None:
    """Return that of the torque signal [Hz], where the samples could show it."""
    found = predictor.result.torque_bandwidth
    return None if found is None or found >= _FILTERED * recorded.rate else found


def _of_drives(predictor: TorquePredictor, recorded: Dataset) -> Array:
    """Return the torque that drives make, or tell, without moving the arm by it, shape (N, n) [N m].

    A constant torque is an offset of the signal, and a ripple turns with the motor: what a drive tells of it, the motor
    has cancelled. Both belong to the recording.
    """
    motion = recorded.q, recorded.dq, recorded.ddq
    kept = TorquePredictor(predictor.model, without_friction(predictor.result, 'offset', 'ripple'))
    return predictor.torque(*motion) - kept.torque(*motion)
