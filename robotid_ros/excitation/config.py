# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Everything an excitation design is asked for, in one typed place."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_args, get_origin, get_type_hints

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.criteria import CRITERIA

__all__ = ['ExcitationConfig']


def _setting(
    description: str,
    *,
    unit: str = '',
    range: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
) -> dict[str, Any]:
    return {'description': description, 'unit': unit, 'range': range, 'choices': choices}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationConfig:
    """Settings of an excitation design; each field's ``metadata`` has its description, unit and range.

    Raises
    ------
    ExcitationError
        If a value is out of its range, or lengths contradict each other.
    """

    period: float = field(default=20.0, metadata=_setting('Period of the trajectory', unit='s', range=(0.1, 1000.0)))
    harmonics: int = field(default=5, metadata=_setting('Harmonics of the Fourier series', range=(2, 40)))
    criterion: str = field(
        default='condition', metadata=_setting('What the optimisation makes small', choices=tuple(CRITERIA))
    )
    seed: int = field(default=0, metadata=_setting('Seed of the random first guesses', range=(0, 2**31 - 1)))
    starts: int = field(default=8, metadata=_setting('Independent optimisations; the best one wins', range=(1, 1000)))
    iterations: int = field(
        default=300, metadata=_setting('Most iterations of the best start; the others get fewer', range=(5, 100000))
    )
    jobs: int = field(
        default=1, metadata=_setting('Processes that share the starts; -1 uses all cores', range=(-1, 1024))
    )
    rotor_inertia: bool = field(default=True, metadata=_setting('Identify rotor inertia too'))
    viscous: bool = field(default=True, metadata=_setting('Identify viscous friction too'))
    coulomb: bool = field(default=True, metadata=_setting('Identify Coulomb friction too'))
    offset: bool = field(default=True, metadata=_setting('Identify torque offsets too'))
    noise: tuple[float, ...] = field(
        default=(), metadata=_setting('Standard deviation of the torque of each joint; empty: all alike', unit='N m')
    )
    position_scaling: float = field(
        default=1.0, metadata=_setting('Part of the position range to use, about its middle', range=(0.01, 1.0))
    )
    velocity_scaling: float = field(default=1.0, metadata=_setting('Part of the velocity limits', range=(0.01, 1.0)))
    acceleration_scaling: float = field(
        default=1.0, metadata=_setting('Part of the acceleration limits', range=(0.01, 1.0))
    )
    jerk_scaling: float = field(default=1.0, metadata=_setting('Part of the jerk limits', range=(0.01, 1.0)))
    torque_scaling: float = field(
        default=1.0, metadata=_setting('Part of the torque limits, checked with the prior model', range=(0.01, 1.0))
    )
    acceleration_limit: float = field(
        default=0.0,
        metadata=_setting(
            'Acceleration limit of the joints that have none; 0 leaves them without', unit='rad/s^2', range=(0.0, 1e4)
        ),
    )
    start_position: tuple[float, ...] = field(
        default=(), metadata=_setting('Where the trajectory starts and ends; empty: anywhere', unit='rad')
    )
    start_at_rest: bool = field(
        default=True, metadata=_setting('Start and end each period with zero velocity and acceleration')
    )
    workspace_frames: tuple[str, ...] = field(
        default=(), metadata=_setting("Links (or 'tip') whose frame origins stay inside the workspace box")
    )
    workspace_lower: tuple[float, ...] = field(
        default=(), metadata=_setting('Lower corner x, y, z of the workspace box in the base frame', unit='m')
    )
    workspace_upper: tuple[float, ...] = field(
        default=(), metadata=_setting('Upper corner x, y, z of the workspace box in the base frame', unit='m')
    )
    geometry: str = field(
        default='', metadata=_setting('YAML file of capsules for link-to-link and link-to-ground clearance')
    )
    link_radius: float = field(
        default=0.0,
        metadata=_setting(
            'Radius of capsules laid between consecutive joints, where no geometry is given; 0: no check',
            unit='m',
            range=(0.0, 10.0),
        ),
    )
    clearance: float = field(
        default=0.02, metadata=_setting('Least distance between capsules, and to the ground', unit='m', range=(0.0, 10))
    )
    ground: bool = field(default=False, metadata=_setting('Keep the capsules above the ground'))
    ground_height: float = field(
        default=0.0, metadata=_setting('Height of the ground in the base frame', unit='m', range=(-100.0, 100.0))
    )

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self))
        for item in fields(self):
            object.__setattr__(self, item.name, _converted(item.name, kinds[item.name], getattr(self, item.name)))
            value, metadata = getattr(self, item.name), item.metadata
            if metadata['range'] is not None and not metadata['range'][0] <= value <= metadata['range'][1]:
                low, high = metadata['range']
                span = f'{low:g} to {high:g} {metadata["unit"]}'.rstrip()
                raise ExcitationError(f'{item.name}: expected {span}, got {value:g}')
            if metadata['choices'] and value not in metadata['choices']:
                raise ExcitationError(f"{item.name}: expected one of {', '.join(metadata['choices'])}; got '{value}'")
        if self.jobs == 0:
            raise ExcitationError('jobs: expected a positive number of processes or -1, got 0')
        for name in ('workspace_lower', 'workspace_upper'):
            corner = getattr(self, name)
            if len(corner) not in (0, 3):
                raise ExcitationError(f'{name}: expected x, y, z, got {len(corner)} numbers')
            if bool(corner) != bool(self.workspace_frames) and corner:
                raise ExcitationError(f'{name} is given, but workspace_frames names no frame that it holds for')
        if self.workspace_frames and not (self.workspace_lower or self.workspace_upper):
            raise ExcitationError('workspace_frames is given, but neither workspace_lower nor workspace_upper')

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> 'ExcitationConfig':
        """Build from plain values, refusing names that are not settings.

        Raises
        ------
        ExcitationError
            If a name is unknown or a value cannot be used.
        """
        known = [item.name for item in fields(cls)]
        for name in content:
            if name not in known:
                raise ExcitationError(
                    f"'{name}' is not a setting of an excitation design; there are: {', '.join(known)}"
                )
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, tuples as lists."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _converted(name: str, kind: Any, value: Any) -> Any:
    """Return the value as the type its field declares, or refuse it."""
    try:
        if get_origin(kind) is tuple:
            if isinstance(value, (str, bytes)):
                raise TypeError
            return tuple(_scalar(get_args(kind)[0], entry) for entry in value)
        return _scalar(kind, value)
    except (TypeError, ValueError) as cause:
        wanted = (
            getattr(kind, '__name__', str(kind))
            if get_origin(kind) is None
            else f'a list of {get_args(kind)[0].__name__}'
        )
        raise ExcitationError(f'{name}: expected {wanted}, got {value!r:.80}') from cause


def _scalar(kind: Any, value: Any) -> Any:
    if kind is bool or kind is str:
        if not isinstance(value, kind):
            raise TypeError
        return value
    if isinstance(value, (str, bytes, bool)):
        raise TypeError
    number = kind(value)
    if number != value or not math.isfinite(number):
        raise ValueError
    return number
