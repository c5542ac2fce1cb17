# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a force-torque sensor carries, its bias and how it is turned, from poses or any motion.

In the frame of the flange, whose origin accelerates with u = a - g and that turns with omega and alpha, a tool of mass
m, first moment h and inertia I about the origin needs

    f = m u + alpha x h + omega x (omega x h),
    n = h x u + I alpha + omega x I omega,

and a sensor that is turned by R against the flange shows s R f + b_f and s R n + b_n, with s = 1 where it shows what
holds the tool, s = -1 where it shows what the tool does to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.bag import WRENCH, Bag, opened, read_bag
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.processing import process_recording
from robotid_ros.data.recording import Recording
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.files import file_hash
from robotid_ros.identification.information import solve
from robotid_ros.identification.samples import evenly_weighted
from robotid_ros.identification.torque_fit import covariance_of_estimate, independent_share
from robotid_ros.model.inertia import INERTIAL_NAMES, split_inertial_parameters
from robotid_ros.model.kinematics import step_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import cross_matrix
from robotid_ros.tables import read_table

AXES = ('force/x', 'force/y', 'force/z', 'torque/x', 'torque/y', 'torque/z')
_TURNED = 1.0
"""Least spread of gravity along each axis of the flange [m/s^2], rms: what a tilt of 10 degrees each way gives."""
_ALIVE = 0.5  # least share of what an axis should show that it has to show
_UNLIKE = 0.03  # least share by which the gain of an axis is said to be off
_LIGHT = 4.0  # deviations above which a mass is one


def read_wrench(
    path: str | Path, joints: Sequence[str], *, topic: str | None = None, cutoff: float | None = None
) -> Dataset:
    """Return joint motion and the wrench of a sensor, the latter as torques of the channels :data:`AXES`.

    They are efforts of joints that never move, so that they go through the screening and the filter of joint torques.
    Raises a DataError if it cannot be read, or an axis or a joint is not in it.

    ``path``: a bag with ``sensor_msgs/JointState`` and ``geometry_msgs/WrenchStamped``, or a CSV file with the columns
    ``time,position/<joint>,...,force/x,...,torque/z`` [s, rad, N, N m]. ``joints``: of the arm, in its order.
    ``topic``: of the wrench, where the bag has several. ``cutoff``: of the low-pass [Hz]; by default chosen from the
    data.
    """
    bag, path, names = opened(path), Path(path), (*joints, *AXES)
    provenance: Mapping[str, Any]
    if isinstance(bag, Bag):
        moving = read_bag(bag, joints=tuple(joints))
        stamps, values = bag.numbers(bag.choose(topic, WRENCH, '; set wrench_topic of the recorder'))
        inside, there = moving.at(stamps)
        if len(there) < 32:
            raise DataError(
                f'{bag.path}: expected at least 32 wrenches while there are joint states, got {len(there)}; are their '
                'stamps of the same clock?'
            )
        time, q, wrench, provenance = there.time, there.position, values[inside], moving.provenance
    else:
        layout = {'time': ['time'], 'q': [f'position/{joint}' for joint in joints], 'wrench': AXES}
        arrays = read_table(path, layout, blank=('wrench',)).arrays
        time, q, wrench = arrays['time'][:, 0], arrays['q'], arrays['wrench']
        provenance = {'file': path.name, 'sha256': file_hash(path)}
    recording = Recording(
        joint_names=names,
        time=time,
        position=np.hstack([q, np.zeros_like(wrench)]),
        effort=np.hstack([np.zeros_like(q), wrench]),
        provenance=provenance,
    )
    settings = ProcessingSettings(joints=names, effort=dict.fromkeys(names, 'torque'), average=False, cutoff=cutoff)
    dataset = process_recording(recording, settings)
    return replace(dataset, sources=(path.name,)) if len(dataset.sources) == 1 else dataset


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrenchResult:
    """An identified force-torque sensor and its tool."""

    frame: str  # the flange, in whose frame the tool is expressed, about whose origin the sensor measures
    rotation: Array  # shape (3, 3): from the flange's axes to the sensor's
    rotation_std: Array  # shape (3,): of a turn about the flange's axes [rad]
    sign: int  # 1 where the sensor shows what holds the tool, -1 where it shows what the tool does to it
    bias: Array  # shape (6,), as its deviation: force and torque [N, N m]
    bias_std: Array
    inertial: Array  # shape (10,), as its deviation: of the tool
    std: Array  # inf where the motion does not tell a parameter
    centre_std: Array  # shape (3,): of the centre of mass [m]
    rmse_without: Array  # shape (6,): what the sensor shows besides its mean [N, N m]
    rmse_with: Array  # shape (6,): and besides tool and bias [N, N m]
    notes: tuple[str, ...] = ()  # what looks wrong with the sensor

    @property
    def mass(self) -> float:
        """Mass of the tool [kg]."""
        return float(self.inertial[9])

    @property
    def centre_of_mass(self) -> Array:
        """Of the tool in the flange's frame, shape (3,) [m]."""
        return split_inertial_parameters(self.inertial)[1]

    def tool_wrench(self, u: Array, omega: Array, alpha: Array) -> Array:
        """Return what the sensor shows of the tool moved so, without its bias, shape (N, 6) [N, N m]."""
        rows = body_wrench(u, omega, alpha) @ np.where(np.isfinite(self.std), self.inertial, 0.0)
        return np.asarray(self.sign * _turned(self.rotation, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        quaternion = Rotation.from_matrix(self.rotation).as_quat()
        return {
            'frame': self.frame,
            'shows': 'what holds the tool' if self.sign > 0 else 'what the tool does to it',
            'rotation': dict(zip(('qx', 'qy', 'qz', 'qw'), quaternion.tolist(), strict=True)),
            'rotation_std': self.rotation_std.tolist(),
            'mass': self.mass,
            'mass_std': float(self.std[9]),
            'centre_of_mass': self.centre_of_mass.tolist(),
            'centre_of_mass_std': self.centre_std.tolist(),
            'bias': {
                axis: {'value': float(value), 'std': float(std)}
                for axis, value, std in zip(AXES, self.bias, self.bias_std, strict=True)
            },
            'parameters': {
                name: {'value': float(value), 'std': float(std)}
                for name, value, std in zip(INERTIAL_NAMES, self.inertial, self.std, strict=True)
            },
            'rmse_without': dict(zip(AXES, self.rmse_without.tolist(), strict=True)),
            'rmse_with': dict(zip(AXES, self.rmse_with.tolist(), strict=True)),
        }

    @classmethod
    def from_dict(cls, content: Any) -> 'WrenchResult':
        """Return what :meth:`to_dict` gave.

        Raises an IdentificationError if something is missing or has another form.
        """
        try:
            bias, parameters = content['bias'], content['parameters']
            quaternion = [content['rotation'][name] for name in ('qx', 'qy', 'qz', 'qw')]
            return cls(
                frame=str(content['frame']),
                rotation=Rotation.from_quat(quaternion).as_matrix(),
                rotation_std=np.array(content['rotation_std'], dtype=float),
                sign=1 if content['shows'] == 'what holds the tool' else -1,
                bias=np.array([bias[axis]['value'] for axis in AXES], dtype=float),
                bias_std=np.array([bias[axis]['std'] for axis in AXES], dtype=float),
                inertial=np.array([parameters[name]['value'] for name in INERTIAL_NAMES], dtype=float),
                std=np.array([parameters[name]['std'] for name in INERTIAL_NAMES], dtype=float),
                centre_std=np.array(content['centre_of_mass_std'], dtype=float),
                rmse_without=np.array([content['rmse_without'][axis] for axis in AXES], dtype=float),
                rmse_with=np.array([content['rmse_with'][axis] for axis in AXES], dtype=float),
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise IdentificationError(f'not a result of robotid wrench: {cause}') from cause


def flange_motion(model: RobotModel, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    """Return how the tip moves, in its own axes: a - g at its origin, angular velocity and acceleration.

    ``q``, ``dq``, ``ddq``, shape (N, n) [rad, rad/s, rad/s^2; or m]. Returns ``u``, ``omega``, ``alpha``, shape (N, 3)
    [m/s^2, rad/s, rad/s^2].
    """
    q, dq, ddq = (each @ model.coupling.T for each in (q, dq, ddq))
    local = step_transforms(model, q)
    u = np.tile(-np.asarray(model.gravity), (len(q), 1))
    omega, alpha = np.zeros((len(q), 3)), np.zeros((len(q), 3))

    def carried(turn: Array, offset: Array) -> tuple[Array, Array, Array]:
        at = u + np.cross(alpha, offset) + np.cross(omega, np.cross(omega, offset))
        at, rate, change = (np.einsum('...ji,...j->...i', turn, each) for each in (at, omega, alpha))
        return at, rate, change

    for i, kind in enumerate(model.joint_types):
        u, omega, alpha = carried(local[i, :, :3, :3], local[i, :, :3, 3])
        rate, change = dq[:, i, None] * model.axes[i], ddq[:, i, None] * model.axes[i]
        if kind == 'revolute':
            alpha = alpha + np.cross(omega, rate) + change
            omega = omega + rate
        else:
            u = u + 2.0 * np.cross(omega, rate) + change
    return carried(model.tip[:3, :3], model.tip[:3, 3])


def body_wrench(u: Array, omega: Array, alpha: Array) -> Array:
    """Return the force and torque that a body needs, per unit of its parameters, shape (N, 6, 10)."""
    rows, cross = np.zeros((len(u), 6, 10)), cross_matrix
    rows[:, :3, 9] = u
    rows[:, :3, 6:9] = cross(alpha) + cross(omega) @ cross(omega)
    rows[:, 3:, 6:9] = -cross(u)
    spread = np.zeros((6, 3, 3))
    for k, (i, j) in enumerate(zip(*np.triu_indices(3), strict=True)):
        spread[k, i, j] = spread[k, j, i] = 1.0
    own = np.einsum('kij,Nj->Nik', spread, omega)
    rows[:, 3:, :6] = np.einsum('kij,Nj->Nik', spread, alpha) + cross(omega) @ own
    return rows


def _turned(rotation: Array, rows: Array) -> Array:
    """Return forces and torques (N, 6, ...) along the sensor's axes."""
    parts = rows.reshape(len(rows), 2, 3, -1)
    return np.asarray(np.einsum('ij,Nkjp->Nkip', rotation, parts).reshape(rows.shape))


def identify_wrench(datasets: Dataset | Sequence[Dataset], model: RobotModel) -> WrenchResult:
    """Return what the sensor at the tip of an arm carries, its bias and how it is turned.

    ``datasets``: as :func:`read_wrench` returns them. ``model``: its tip is the flange, at the origin that the sensor's
    torques are about. Raises an IdentificationError if an axis of the sensor is dead, the flange was turned too little,
    or there is no weight.
    """
    listed = [datasets] if isinstance(datasets, Dataset) else list(datasets)
    samples = evenly_weighted(listed, model, None)
    columns = [[each.joint_names.index(axis) for axis in AXES] for each in listed]
    wrench = np.concatenate([each.tau_filtered[:, where] for each, where in zip(listed, columns, strict=True)])
    u, omega, alpha = flange_motion(model, samples.q, samples.dq, samples.ddq)
    return fit_wrench(u, omega, alpha, wrench, samples.run_labels, model.tip_name)


def fit_wrench(u: Array, omega: Array, alpha: Array, wrench: Array, runs: IntArray, frame: str) -> WrenchResult:
    """Return the sensor and its tool from how the flange moved, shape (N, 3) each, and the wrench, shape (N, 6).

    Gauss-Newton over parameters, bias and rotation, from the rotation that is closest to the linear fit of the forces.
    See :func:`identify_wrench`; ``runs`` number the samples that are contiguous in time, shape (N,).
    """
    spread = wrench - wrench.mean(axis=0)
    still = np.ptp(wrench, axis=0) <= 1e-9 * np.maximum(np.abs(wrench).max(axis=0), 1e-9)
    if still.any():
        _refuse(int(np.argmax(still)), 'always shows the same value')
    turned = np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(u.T)), 0.0))
    if turned[0] < _TURNED:
        raise IdentificationError(
            f'the flange was turned too little: gravity varies by {turned[0]:.2g} m/s^2 along one of its axes, '
            f'expected at least {_TURNED:g}; take poses in which each axis of the flange points up and down'
        )
    centred = u - u.mean(axis=0)
    linear = np.linalg.lstsq(centred, spread[:, :3], rcond=None)[0].T  # s m R
    noise = np.sqrt(np.mean((spread[:, :3] - centred @ linear.T) ** 2) * np.linalg.inv(centred.T @ centred).max())
    left, size, right = np.linalg.svd(linear)
    weight = np.linalg.norm(linear, axis=1)
    if size[0] < _LIGHT * noise:
        raise IdentificationError(
            'the forces do not turn with the flange: the sensor carries no weight that it can feel'
        )
    if weight.min() < _ALIVE * np.median(weight):
        _refuse(int(np.argmin(weight)), f'shows {100.0 * weight.min() / np.median(weight):.0f} % of the weight')
    sign = 1 if np.linalg.det(left @ right) > 0.0 else -1
    rotation = sign * (left @ right)
    body = body_wrench(u, omega, alpha)
    _require_torques(sign * _turned(rotation, body)[:, 3:, :9], spread[:, 3:])
    bias = np.tile(np.eye(6), (len(u), 1, 1))
    precision, inertial = np.ones(6), np.zeros(10)
    inertial[9] = float(size.mean())
    for _ in range(12):
        held = sign * _turned(rotation, body)
        shown = (body @ inertial).reshape(-1, 2, 3)
        lever = -sign * np.einsum('ij,Nkjp->Nkip', rotation, cross_matrix(shown))
        rows = np.concatenate([held, bias, lever.reshape(-1, 6, 3)], axis=2)
        matrix = np.einsum('Nnp,n,Nnq->pq', rows, precision, rows, optimize=True)
        vector = np.einsum('Nnp,n,Nn->p', rows, precision, wrench, optimize=True)
        found = solve(matrix, vector, len(vector), None)
        residual = wrench - rows @ found.parameters
        precision = 1.0 / np.maximum(np.mean(residual**2, axis=0), 1e-18)
        inertial = found.parameters[:10]
        rotation = rotation @ Rotation.from_rotvec(found.parameters[16:]).as_matrix()
    shown = sign * _turned(rotation, body) @ inertial
    rest = wrench - shown - found.parameters[10:16]
    covariance = covariance_of_estimate(rows, rest, runs, precision, found.inverse, rows.shape[2], 1)
    std = np.where(found.determined, np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.inf)
    centre = inertial[6:9] / inertial[9]
    slope = np.zeros((3, len(std)))
    slope[:, 6:9], slope[:, 9] = np.eye(3) / inertial[9], -centre / inertial[9]
    return WrenchResult(
        frame=frame,
        rotation=rotation,
        rotation_std=std[16:],
        sign=sign,
        bias=found.parameters[10:16],
        bias_std=std[10:16],
        inertial=inertial,
        std=std[:10],
        centre_std=np.sqrt(np.maximum(np.einsum('ip,pq,iq->i', slope, covariance, slope), 0.0)),
        rmse_without=np.std(wrench, axis=0),
        rmse_with=np.sqrt(np.mean(rest**2, axis=0)),
        notes=_unlike(shown - shown.mean(axis=0), rest - rest.mean(axis=0), runs),
    )


def _unlike(shown: Array, rest: Array, runs: IntArray) -> tuple[str, ...]:
    """Return which axes show more or less of the tool than the others, from what each shows of it and what is left."""
    parts = [slice(int(np.argmax(runs == run)), int(np.argmax(runs == run) + (runs == run).sum())) for run in set(runs)]
    count = independent_share(rest, parts) * len(rest)
    power = np.maximum(np.sum(shown**2, axis=0), 1e-300)
    more = np.sum(shown * rest, axis=0) / power  # what each shows, less 1
    sure = np.sqrt(np.sum(rest**2, axis=0) / power / max(count, 1.0))
    left = np.sqrt(np.sum(rest**2, axis=0) / np.maximum(np.sum((shown + rest) ** 2, axis=0), 1e-300))
    notes = []
    for k, axis in enumerate(AXES):
        if left[k] > _ALIVE:
            notes.append(f'the tool leaves {100.0 * left[k]:.0f} % of what {axis} shows unexplained: is its unit SI?')
        elif abs(more[k]) > max(_UNLIKE, _LIGHT * sure[k]):
            what = 'weight: its gain is off, or it drifts' if k < 3 else 'torque of the tool: its gain or unit is off'
            notes.append(f'{axis} shows {100.0 * (1.0 + more[k]):.1f} % of the {what}')
    return tuple(notes)


def _require_torques(rows: Array, torque: Array) -> None:
    """Refuse an axis of torque that is dead: two show the whole tool, so each is compared with what the others tell.

    The one to compare is that without which the others agree best.
    """
    rows = rows - rows.mean(axis=0)
    told = []
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        part, seen = np.concatenate(rows[:, others].transpose(1, 0, 2)), torque[:, others].T.ravel()
        tool = np.linalg.lstsq(part, seen, rcond=1e-6)[0]
        left = float(np.mean((seen - part @ tool) ** 2))
        expected = rows[:, axis] @ tool
        told.append((left, axis, expected))
    left, axis, expected = min(told, key=lambda each: each[0])
    power = float(expected @ expected)
    share = float(expected @ torque[:, axis]) / max(power, 1e-300)
    if power > _LIGHT**2 * left and share < _ALIVE:
        _refuse(3 + axis, f'shows {100.0 * max(share, 0.0):.0f} % of what the tool makes of it')


def _refuse(axis: int, why: str) -> None:
    raise IdentificationError(
        f"axis '{AXES[axis]}' of the sensor {why}: it is dead, or its cable is; nothing is identified"
    )
