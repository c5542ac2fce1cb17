# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of an identification, and its file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.arrays import Array, freeze_fields, plain
from robotid_ros.errors import IdentificationError, RobotIdError
from robotid_ros.files import write_text
from robotid_ros.friction import FrictionModel, friction_model, unit_of
from robotid_ros.friction.model import PER_JOINT
from robotid_ros.friction.terms import LONGEST_DELAY
from robotid_ros.identification.judge import Alternative, Decision
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.verdict import JointVerdict, Metrics, Use
from robotid_ros.model.inertia import INERTIAL_NAMES, physical_violation
from robotid_ros.reading import parse_yaml, read_bool, read_text, refusing

CARD_FORMAT = 'robotid card 1'
"""What a card says it is; it holds a result as its entry ``result``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdentificationResult:
    """An identified dynamic model with its uncertainty.

    Attributes
    ----------
    robot : str
    joint_names, link_names : tuple of str
        n moving joints and the links they move.
    joint_types : tuple of str
    gravity : ndarray, shape (3,)
        [m/s^2]
    base_names, base_units : tuple of str
        b base parameters; their names show no more than five terms.
    base_combinations : tuple of mapping
        For each base parameter the factors of the standard parameters in it, all of them.
    base_values, base_std : ndarray, shape (b,)
        Standard deviations are inf where the data leave a parameter open.
    base_essential : tuple of bool
        Whether the parameter is essential, see ``essential_parameters``.
    inertial : ndarray, shape (n, 10)
        Physically consistent standard parameters, about the link frames' origins.
    rotor_inertia : ndarray, shape (n,)
    has_rotor_inertia : bool
        Whether rotor inertias belong to the base parameters.
    drives : ndarray, shape (n, n), or None
        Positions of the motors over those of the joints, where they are coupled; friction and rotors are the motors'.
    friction : FrictionModel
        k linear and s shape parameters of each joint, and what is one number for each joint.
    friction_values, friction_std : ndarray, shape (n, k + s)
    plain_friction : ndarray, shape (n, 2), or None
        Coulomb [N m] and viscous [N m s/rad] friction closest to the model along the training motion; None
        in a result that does not have them.
    torque_bandwidth : float or None
        Bandwidth of the torque signal found in the data [Hz].
    cutoff : float or None
        Of the low-pass chosen for motion and torque [Hz]; None where it was not chosen here.
    delay : float
        Of the recorded torque behind the motion [s], taken out of all recordings.
    condition_si, condition_scaled : float
    usable : bool
    reason : str
        Why the result is not usable, or a remark.
    metrics : mapping of str to Metrics
        'training', and 'validation' and 'test' where there was data.
    consistent_metrics : mapping of str to Metrics
        The same with the physically consistent parameters: what ``calibrated.urdf`` and other descriptions hold.
    joints : tuple of JointVerdict
        Whether each joint can be used, why not, and what to do.
    notes : tuple of str
        What looked wrong in the data but is not certain.
    decisions : tuple of Decision
        What was chosen automatically, with the alternatives and their errors, in order.
    provenance : mapping
        Plain numbers, strings and lists.
    setup : SetUp or None
        How recorded coordinates and the mount differ from the description; None in a result that does not say.
    good_for : tuple of Use
        What the model can be used for, each with its number.
    """

    robot: str
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    link_names: tuple[str, ...]
    gravity: Array
    base_names: tuple[str, ...]
    base_units: tuple[str, ...]
    base_values: Array
    base_std: Array
    base_essential: tuple[bool, ...]
    inertial: Array
    rotor_inertia: Array
    has_rotor_inertia: bool
    friction: FrictionModel
    friction_values: Array
    friction_std: Array
    torque_bandwidth: float | None
    condition_si: float
    condition_scaled: float
    usable: bool
    reason: str
    metrics: Mapping[str, Metrics]
    consistent_metrics: Mapping[str, Metrics] = field(default_factory=dict)
    joints: tuple[JointVerdict, ...] = ()
    notes: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    cutoff: float | None = None
    delay: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    plain_friction: Array | None = None
    drives: Array | None = None
    setup: SetUp | None = None
    good_for: tuple[Use, ...] = ()
    base_combinations: tuple[Mapping[str, float], ...] = ()

    def __post_init__(self) -> None:
        n, b, f = len(self.joint_names), len(self.base_names), len(self.friction.names)
        shapes = {
            'gravity': (3,),
            'base_values': (b,),
            'inertial': (n, 10),
            'rotor_inertia': (n,),
            'friction_values': (n, f),
            'drives': (n, n),
            'plain_friction': (n, 2),
        }
        freeze_fields(self, IdentificationError, shapes)
        freeze_fields(self, IdentificationError, {'base_std': (b,), 'friction_std': (n, f)}, finite=False)
        object.__setattr__(self, 'friction', self.friction.of_joints(n))
        if not abs(self.delay) <= LONGEST_DELAY:
            raise IdentificationError(f'delay: expected at most {LONGEST_DELAY:g} s either way, got {self.delay:g} s')
        for name in ('cutoff', 'torque_bandwidth'):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < np.inf:
                raise IdentificationError(f'{name}: expected a frequency above 0, or none, got {value:g} Hz')

    @property
    def friction_names(self) -> tuple[str, ...]:
        """Names of the k + s friction parameters of a joint."""
        return self.friction.names

    @property
    def friction_units(self) -> tuple[tuple[str, ...], ...]:
        """Units of the friction parameters, joint by joint."""
        return tuple(tuple(unit_of(each, kind) for each in self.friction.quantities) for kind in self.joint_types)

    @property
    def base_relative_std(self) -> Array:
        """100 std / |value| of the base parameters, shape (b,) [%]."""
        return _relative(self.base_values, self.base_std)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of result.yaml."""
        relative = self.base_relative_std
        base = [
            {
                'name': name,
                'value': self.base_values[k],
                'std': self.base_std[k],
                'relative_std': relative[k],
                'unit': self.base_units[k],
                'essential': self.base_essential[k],
                'combination': self.base_combinations[k] if self.base_combinations else {},
            }
            for k, name in enumerate(self.base_names)
        ]
        standard = {
            link: {
                'joint': self.joint_names[k],
                **dict(zip(INERTIAL_NAMES, self.inertial[k], strict=True)),
                'Ia': self.rotor_inertia[k],
            }
            for k, link in enumerate(self.link_names)
        }
        content = {
            'robot': self.robot,
            'joints': self.joint_names,
            'joint_types': self.joint_types,
            'gravity': self.gravity,
            'usable': self.usable,
            'reason': self.reason,
            'joint_verdicts': {verdict.joint: verdict.to_dict() for verdict in self.joints},
            'notes': self.notes,
            'good_for': {use.name: use.to_dict() for use in self.good_for},
            'setup': self.setup,
            'metrics': {name: value.to_dict() for name, value in self.metrics.items()},
            'consistent_metrics': {name: value.to_dict() for name, value in self.consistent_metrics.items()},
            'condition_number': {'si': self.condition_si, 'scaled': self.condition_scaled},
            'torque_bandwidth': self.torque_bandwidth,
            'cutoff': self.cutoff,
            'delay': self.delay,
            'rotor_inertia_identified': self.has_rotor_inertia,
            'drives': self._by_joint(self.drives),
            'base_parameters': base,
            'friction': self._friction_dict(),
            'standard_parameters': standard,
            'decisions': [decision.to_dict() for decision in self.decisions],
            'provenance': self.provenance,
        }
        return dict(plain(content))

    def _friction_dict(self) -> dict[str, Any]:
        relative = _relative(self.friction_values, self.friction_std)
        joints = {
            joint: {
                name: {
                    'value': self.friction_values[j, k],
                    'std': self.friction_std[j, k],
                    'relative_std': relative[j, k],
                    'unit': self.friction_units[j][k],
                }
                for k, name in enumerate(self.friction_names)
            }
            for j, joint in enumerate(self.joint_names)
        }
        closest = (self._by_joint(self.plain_friction) or {}).items()
        return {
            'model': self.friction.name,
            **{name: self._by_joint(getattr(self.friction, name)) for name in PER_JOINT},
            'lag': self.friction.lag,
            'ripple_limit': self.friction.ripple_limit,
            'joints': joints,
            'urdf': {joint: {'friction': row[0], 'damping': row[1]} for joint, row in closest} or None,
        }

    def _by_joint(self, values: Array | None) -> dict[str, Any] | None:
        return None if values is None else dict(zip(self.joint_names, values.tolist(), strict=True))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> 'IdentificationResult':
        """Return the result that :meth:`to_dict` wrote.

        Raises
        ------
        IdentificationError
            If something is missing or has another form.
        """
        try:
            return cls(**_fields(data))
        except RobotIdError:
            raise
        except KeyError as cause:
            raise IdentificationError(
                f'not a result of an identification, or not all of one: the entry {cause} is missing'
            ) from cause
        except (ValueError, TypeError, AttributeError, IndexError) as cause:
            raise IdentificationError(
                f'not a result of an identification: {cause}; expected the layout of result.yaml'
            ) from cause

    def to_yaml(self) -> str:
        """Return the text of result.yaml."""
        dumper = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
        content = self.to_dict()
        content['sha256'] = _digest(content)
        return str(yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120))

    def save(self, path: str | Path) -> None:
        """Write result.yaml, whole or not at all.

        Raises
        ------
        DataError
            If the folder does not exist or cannot be written.
        """
        write_text(path, self.to_yaml())

    @classmethod
    def from_yaml(cls, text: str) -> 'IdentificationResult':
        """Read the text of a result.yaml.

        Raises
        ------
        IdentificationError
            If it is not YAML, or not a result.
        """
        try:
            data = parse_yaml(text)
        except (ValueError, RecursionError) as cause:
            raise IdentificationError(f'not a result of an identification: {" ".join(str(cause).split())}') from cause
        if not isinstance(data, dict):
            raise IdentificationError(f'not a result of an identification: expected a mapping, got {data!r:.60}')
        if data.get('format') == CARD_FORMAT:
            data = data.get('result')
            if not isinstance(data, dict):
                raise IdentificationError(
                    'a card without a result; expected the entry result, as robotid card writes it'
                )
        written = data.pop('sha256', None)
        if written is not None and written != _digest(data):
            raise IdentificationError(
                'its entries are not those that were written (their sha256 differs): it was changed or damaged; '
                'identify again, or delete the line sha256 to use it as it is'
            )
        return cls.from_dict(data)

    @classmethod
    def load(cls, path: str | Path) -> 'IdentificationResult':
        """Read a result.yaml, given by its own path or by the folder it is in.

        Raises
        ------
        IdentificationError
            If the file cannot be read or is no result.
        """
        path = Path(path) / 'result.yaml' if Path(path).is_dir() else path
        text = read_text(path, 'result', IdentificationError)
        with refusing(f"result '{path}'", IdentificationError):
            try:
                return cls.from_yaml(text)
            except RobotIdError as cause:
                raise IdentificationError(f'{path}: {cause}') from cause


def _digest(content: Mapping[str, Any]) -> str:
    """Return the hash of all entries, which is the same after reading: YAML keeps every digit."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the constructor's arguments from the contents of result.yaml."""
    joints = tuple(data['joints'])
    base, friction, standard = data['base_parameters'], data['friction'], data['standard_parameters']

    def by_joint(values: Mapping[str, Any] | None, *keys: str) -> Array | None:
        if values is None:
            return None
        return np.array([[values[j][key] for key in keys] if keys else values[j] for j in joints], dtype=float)

    known = friction_model(
        friction['model'],
        **{name: by_joint(friction.get(name)) for name in PER_JOINT},
        lag=float(friction.get('lag', 0.0)),
        ripple_limit=float(friction['ripple_limit']),
    )
    held = tuple(friction['joints'][joints[0]])  # in whatever order: who wrote the file may sort its keys
    if set(held) != set(known.names):
        raise IdentificationError(
            f"friction model '{known.name}' has the parameters {', '.join(known.names)}, but the result holds "
            f'{", ".join(held)}: identify again, where another version made it'
        )
    inertial = np.array([[link[name] for name in INERTIAL_NAMES] for link in standard.values()], dtype=float)
    for link, parameters in zip(standard, inertial, strict=True):
        if (reason := physical_violation(parameters)) is not None:
            raise IdentificationError(f"link '{link}' is not a physical body: {reason}")

    def table(key: str) -> Array:
        rows = [[friction['joints'][joint][name][key] for name in known.names] for joint in joints]
        return np.array(rows, dtype=float).reshape(len(joints), len(known.names))

    return {
        'robot': data['robot'],
        'joint_names': joints,
        'joint_types': tuple(data['joint_types']),
        'link_names': tuple(standard),
        'gravity': np.array(data['gravity'], dtype=float),
        'base_names': tuple(entry['name'] for entry in base),
        'base_units': tuple(entry['unit'] for entry in base),
        'base_combinations': tuple(dict(entry.get('combination', {})) for entry in base),
        'base_values': np.array([entry['value'] for entry in base], dtype=float),
        'base_std': np.array([entry['std'] for entry in base], dtype=float),
        'base_essential': tuple(read_bool(entry, 'essential') for entry in base),
        'inertial': inertial,
        'rotor_inertia': np.array([link['Ia'] for link in standard.values()], dtype=float),
        'has_rotor_inertia': read_bool(data, 'rotor_inertia_identified'),
        'drives': by_joint(data.get('drives')),
        'friction': known,
        'friction_values': table('value'),
        'friction_std': table('std'),
        'plain_friction': by_joint(friction.get('urdf'), 'friction', 'damping'),
        'torque_bandwidth': None if data['torque_bandwidth'] is None else float(data['torque_bandwidth']),
        'cutoff': None if data['cutoff'] is None else float(data['cutoff']),
        'delay': float(data.get('delay', 0.0)),
        'condition_si': float(data['condition_number']['si']),
        'condition_scaled': float(data['condition_number']['scaled']),
        'setup': None if data.get('setup') is None else SetUp.from_dict(data['setup'], len(joints)),
        'good_for': tuple(Use.from_dict(name, each) for name, each in data.get('good_for', {}).items()),
        'usable': read_bool(data, 'usable'),
        'reason': str(data['reason']),
        'metrics': {name: Metrics.from_dict(value) for name, value in data['metrics'].items()},
        'consistent_metrics': {name: Metrics.from_dict(value) for name, value in data['consistent_metrics'].items()},
        'joints': tuple(
            JointVerdict(
                joint=joint, usable=read_bool(entry, 'usable'), reason=str(entry['reason']), advice=str(entry['advice'])
            )
            for joint, entry in data['joint_verdicts'].items()
        ),
        'notes': tuple(str(note) for note in data['notes']),
        'decisions': tuple(_decision(entry) for entry in data['decisions']),
        'provenance': data['provenance'],
    }


def _decision(entry: Mapping[str, Any]) -> Decision:
    return Decision(
        subject=str(entry['subject']),
        chosen=str(entry['chosen']),
        alternatives=tuple(
            Alternative(name=str(each['name']), error=np.array(each['error'], dtype=float))
            for each in entry['alternatives']
        ),
    )


def _relative(values: Array, std: Array) -> Array:
    size = np.abs(values)
    return np.where(size > 0.0, 100.0 * std / np.where(size > 0.0, size, 1.0), np.inf)
