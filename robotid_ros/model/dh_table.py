# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Denavit-Hartenberg tables: from rows or YAML files, to models, and written back after a calibration."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import yaml

from robotid_ros.arrays import Array, freeze_fields, frozen_array, unset
from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import transform_inertial_parameters
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import STANDARD_GRAVITY, JointType, RobotModel
from robotid_ros.model.transforms import rotation_x, rotation_y, rotation_z, translation
from robotid_ros.reading import read_yaml, refusing

DHConvention: TypeAlias = Literal['standard', 'modified']

LENGTH_UNITS = {'m': 1.0, 'mm': 1e-3}
ANGLE_UNITS = {'rad': 1.0, 'deg': np.pi / 180.0}
_TOP_KEYS = ('name', 'convention', 'length_unit', 'angle_unit', 'gravity', 'joints')
_COLUMNS = ('theta', 'd', 'a', 'alpha')
_JOINT_KEYS = ('name', 'type', *_COLUMNS, 'beta', 'direction', 'lower', 'upper')
_LONGEST = 30.0  # [m]; no arm has a link of this length, but many tables are in millimetres


@dataclass(frozen=True, slots=True, kw_only=True)
class DHTable:
    """A serial arm as a DH table, with Hayati's extra rotation beta.

    Standard (distal) rows: A_i = Rz(theta_i + q_i) Tz(d_i) Tx(a_i) Rx(alpha_i) Ry(beta_i).
    Modified (Khalil/Craig) rows: A_i = Rx(alpha_i) Tx(a_i) Ry(beta_i) Rz(theta_i + q_i) Tz(d_i).
    A prismatic joint adds q_i to d_i instead. q_i = direction_i * (joint coordinate).

    Raises a ModelError if shapes differ, a value is not finite, a direction is not +-1 or a name repeats.
    """

    joint_names: tuple[str, ...]
    theta: Array  # shape (n,) [rad]; lengths below are in m, and all five have this shape
    d: Array
    a: Array
    alpha: Array
    beta: Array = field(default_factory=unset)  # zero in a nominal table
    convention: DHConvention = 'standard'
    joint_types: tuple[JointType, ...] = ()  # revolute by default
    # shape (n,): +1, or -1 where the controller's coordinate has the opposite sign
    direction: Array = field(default_factory=unset)
    limits: JointLimits = field(default_factory=lambda: JointLimits.unlimited(0))  # a file has lower and upper only
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))  # shape (3,): in the base frame [m/s^2]
    name: str = 'robot'

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        if n == 0:
            raise ModelError('a DH table needs at least one joint; it has none')
        if len(set(self.joint_names)) != n:
            raise ModelError(f'joint names must differ; got {", ".join(self.joint_names)}')
        if self.convention not in ('standard', 'modified'):
            raise ModelError(f"convention: expected 'standard' or 'modified', got '{self.convention}'")
        defaults = {'beta': np.zeros(n), 'direction': np.ones(n)}
        shapes: dict[str, tuple[int, ...]] = {**dict.fromkeys((*_COLUMNS, *defaults), (n,)), 'gravity': (3,)}
        freeze_fields(self, ModelError, shapes, defaults=defaults)
        if not np.isin(self.direction, (-1.0, 1.0)).all():
            raise ModelError(f'direction: expected 1 or -1, got {self.direction.tolist()}')
        if not self.joint_types:
            object.__setattr__(self, 'joint_types', ('revolute',) * n)
        if len(self.joint_types) != n or not set(self.joint_types) <= {'revolute', 'prismatic'}:
            raise ModelError(f"type: expected {n} of 'revolute' or 'prismatic', got {self.joint_types}")
        if len(self.limits.lower) == 0:
            object.__setattr__(self, 'limits', JointLimits.unlimited(n))
        if len(self.limits.lower) != n:
            raise ModelError(f'limits: expected {n} joints, got {len(self.limits.lower)}')

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    def robot_model(self) -> RobotModel:
        """Return the arm as a massless :class:`RobotModel` whose joint axes are z."""
        placements = np.empty((self.n, 4, 4))
        below = np.eye(4)
        for i in range(self.n):
            about_z = rotation_z(self.theta[i]) @ translation([0.0, 0.0, self.d[i]])
            along_x = translation([self.a[i], 0.0, 0.0])
            twist, tilt = rotation_x(self.alpha[i]), rotation_y(self.beta[i])
            if self.convention == 'standard':
                placements[i] = below
                below = about_z @ along_x @ twist @ tilt
            else:  # a screw about z commutes with the joint's motion
                placements[i] = twist @ along_x @ tilt @ about_z
        return RobotModel(
            name=self.name,
            joint_names=self.joint_names,
            joint_types=self.joint_types,
            placements=placements,
            axes=np.tile([0.0, 0.0, 1.0], (self.n, 1)),
            inertial=np.zeros((self.n, 10)),
            coupling=np.diag(self.direction),
            limits=self.limits,
            gravity=self.gravity,
            tip=below,
        )

    def to_yaml(self) -> str:
        """Return the table as YAML that :func:`read_dh_file` reads back to the last digit [rad, m]."""
        joints: list[dict[str, Any]] = []
        for i, name in enumerate(self.joint_names):
            row: dict[str, Any] = {'name': name}
            if self.joint_types[i] != 'revolute':
                row['type'] = self.joint_types[i]
            row |= {key: float(getattr(self, key)[i]) for key in _COLUMNS}
            if self.beta[i] != 0.0:
                row['beta'] = float(self.beta[i])
            if self.direction[i] < 0.0:
                row['direction'] = -1
            row |= {
                key: float(bound[i])
                for key, bound in (('lower', self.limits.lower), ('upper', self.limits.upper))
                if np.isfinite(bound[i])
            }
            joints.append(row)
        content: dict[str, Any] = {'name': self.name, 'convention': self.convention}
        if not np.array_equal(self.gravity, STANDARD_GRAVITY):
            content['gravity'] = self.gravity.tolist()
        return yaml.safe_dump({**content, 'joints': joints}, sort_keys=False, width=200)


def model_of_dh_rows(
    rows: Sequence[Sequence[float]],
    convention: DHConvention,
    *,
    types: Sequence[JointType] | None = None,
    names: Sequence[str] | None = None,
    inertial: Array | None = None,
    tip: Array | None = None,
    **options: Any,
) -> RobotModel:
    """Return the arm of bare DH rows; see :meth:`RobotModel.from_dh` and :meth:`RobotModel.from_mdh`.

    Rows are standard (theta, d, a, alpha) or modified (alpha, a, d, theta), one per joint [rad, m]; all joints are
    revolute by default, and called ``joint1``, ``joint2``, ... ``inertial``, shape (n, 10), is in the DH frames, which
    for standard rows are at the far end of each link; zero by default. ``tip``, shape (4, 4), is in the last DH frame.
    The options are other fields of :class:`RobotModel`: gravity, limits, rotor_inertia, ...

    Raises a ModelError if the table has no rows or a row does not hold four finite numbers.
    """
    columns = _COLUMNS if convention == 'standard' else ('alpha', 'a', 'd', 'theta')
    if len(rows) == 0:
        raise ModelError(f'DH table: expected at least one row of ({", ".join(columns)}), got none')
    values = frozen_array(rows, f'DH table of ({", ".join(columns)})', (None, 4), ModelError)
    model = DHTable(
        joint_names=tuple(names or (f'joint{k + 1}' for k in range(len(values)))),
        joint_types=tuple(types or ()),
        convention=convention,
        **dict(zip(columns, values.T, strict=True)),
    ).robot_model()
    if inertial is not None and convention == 'standard':  # link frames of the model are at the near ends
        distal = frozen_array(inertial, 'inertial', (model.n, 10), ModelError)
        links = [*model.placements[1:], model.tip]
        inertial = np.stack(
            [
                transform_inertial_parameters(pi, link[:3, :3], link[:3, 3])
                for pi, link in zip(distal, links, strict=True)
            ]
        )
    end = model.tip if tip is None else model.tip @ tip
    return replace(model, inertial=model.inertial if inertial is None else inertial, tip=end, **options)


def read_dh_file(path: str | Path) -> DHTable:
    """Read a DH table from a YAML file.

    The file holds ``convention: standard | modified`` and ``joints:``, a list of ``{name, theta, d, a, alpha}``; a row
    may also have ``type: prismatic``, ``beta``, ``direction: -1``, ``lower`` and ``upper``. Units are rad and m unless
    ``angle_unit: deg`` or ``length_unit: mm`` says otherwise. ``name`` and ``gravity`` are optional.

    Raises a ModelError if the file is absent, is not YAML, or a key or value is not what was expected.
    """
    content = read_yaml(path, 'DH file', ModelError)
    with refusing(f"DH file '{path}'", ModelError, file=str(path)):
        where = f"DH file '{path}'"
        if not isinstance(content, Mapping):
            raise ModelError(f"{where}: expected the keys 'convention' and 'joints', got {type(content).__name__}")
        _require_keys(content, _TOP_KEYS, where)
        convention = _word(content, 'convention', ('standard', 'modified'), None, where)
        length = LENGTH_UNITS[_word(content, 'length_unit', LENGTH_UNITS, 'm', where)]
        angle = ANGLE_UNITS[_word(content, 'angle_unit', ANGLE_UNITS, 'rad', where)]
        joints = content.get('joints')
        if not isinstance(joints, list) or not joints or not all(isinstance(row, Mapping) for row in joints):
            raise ModelError(f"{where}: 'joints' must be a list of {{name, theta, d, a, alpha}}; it is {joints!r:.60}")
        rows = [_row(row, k, length, angle, where) for k, row in enumerate(joints)]
        bounds = {key: np.array([row[key] for row in rows]) for key in ('lower', 'upper')}
        return DHTable(
            name=str(content.get('name', 'robot')),
            convention=convention,
            joint_names=tuple(row['name'] for row in rows),
            joint_types=tuple(row['type'] for row in rows),
            **{key: np.array([row[key] for row in rows]) for key in (*_COLUMNS, 'beta', 'direction')},
            limits=JointLimits.unlimited(len(rows)).overridden(**bounds),
            gravity=content.get('gravity', STANDARD_GRAVITY),
        )


def _row(row: Mapping[str, Any], k: int, length: float, angle: float, where: str) -> dict[str, Any]:
    name = row.get('name', f'joint{k + 1}')
    if not isinstance(name, str | int):
        raise ModelError(f"{where}, joint {k + 1}: 'name' must be a text; it is {name!r:.60}")
    owner = f"{where}, joint '{name}'"
    _require_keys(row, _JOINT_KEYS, owner)
    kind = _word(row, 'type', ('revolute', 'prismatic'), 'revolute', owner)
    for key in _COLUMNS:
        if key not in row:
            raise ModelError(f"{owner}: '{key}' is missing; a row holds theta, d, a and alpha", name=key)
    values = {key: _number(row, key, 0.0, owner) for key in (*_COLUMNS, 'beta')}
    for key in ('theta', 'alpha', 'beta'):
        values[key] *= angle
        if abs(values[key]) > 2.01 * np.pi:
            message = f"{owner}: {key} = {row[key]} rad is more than a turn; if it is in degrees, say 'angle_unit: deg'"
            raise ModelError(message, name=key, found=row[key])
    for key in ('d', 'a'):
        values[key] *= length
        if abs(values[key]) > _LONGEST:
            message = (
                f"{owner}: {key} = {row[key]} m is longer than any arm; if it is in millimetres, say 'length_unit: mm'"
            )
            raise ModelError(message, name=key, found=row[key])
    joint_unit = angle if kind == 'revolute' else length
    return {
        'name': str(name),
        'type': kind,
        **values,
        'direction': _number(row, 'direction', 1.0, owner),
        'lower': _number(row, 'lower', np.nan, owner) * joint_unit,
        'upper': _number(row, 'upper', np.nan, owner) * joint_unit,
    }


def _number(row: Mapping[str, Any], key: str, default: float, owner: str) -> float:
    if key not in row:
        return default
    value = row[key]
    try:  # PyYAML reads 1e-3, without a point, as a string
        number = np.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ModelError(f"{owner}: '{key}' must be a finite number; it is {value!r}", name=key, found=value)
    return number


def _word(content: Mapping[str, Any], key: str, words: Collection[str], default: str | None, where: str) -> Any:
    word = content.get(key, default)
    if word not in tuple(words):
        message = f"{where}: '{key}' must be one of {', '.join(words)}; it is {word!r}"
        raise ModelError(message, name=key, expected=tuple(words), found=word)
    return word


def _require_keys(content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in content:
        if key not in known:
            raise ModelError(f"{where}: unknown key '{key}'; known are: {', '.join(known)}", name=key, expected=known)
