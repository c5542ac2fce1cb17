# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Excitation files: YAML from which a trajectory and its design can be repeated to the last digit."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from robotid_ros.errors import ExcitationError, ModelError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import Bound, Peak, sides_of
from robotid_ros.excitation.criteria import Excitation
from robotid_ros.excitation.fourier import FourierTrajectory, trajectory_extremes
from robotid_ros.files import write_text
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.reading import read_yaml, refusing

_ACTIVE = 0.01  # of a bound's scale: closer bounds count as active
FORMAT = 'robotid excitation 1'
_SLACK = 1e-6  # of a largest value, for round-off and for limits written by hand with six digits
_KEYS = ('joints', 'trajectory', 'limits', 'criteria', 'settings', 'base_parameters')


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationDesign:
    """A trajectory that keeps its limits, and how well it excites the base parameters.

    Attributes
    ----------
    trajectory : FourierTrajectory
    joint_names : tuple of str
    excitation : Excitation
        All criteria.
    config : ExcitationConfig
    limits : JointLimits
        Limits of the check, scaling included.
    base_parameters : int
        Number of base parameters, the columns of friction and offset among them.
    friction_parameters : int
        How many of them are friction and offset.
    peaks : tuple of Peak
        How close it comes to every bound.
    interrupted : bool
        The optimisation was stopped early; this is the best trajectory until then.
    evaluations : int
        Of the objective and its gradient, over all starts.
    """

    trajectory: FourierTrajectory
    joint_names: tuple[str, ...]
    excitation: Excitation
    config: ExcitationConfig
    limits: JointLimits
    base_parameters: int
    friction_parameters: int = 0
    peaks: tuple[Peak, ...] = ()
    interrupted: bool = False
    evaluations: int = 0

    @property
    def active(self) -> tuple[Peak, ...]:
        """The active bounds: reached within one per cent of their range."""
        return tuple(peak for peak in self.peaks if peak.excess > -_ACTIVE)

    @property
    def counted(self) -> str:
        """How many parameters the motion is for, as an identification counts them."""
        friction = self.friction_parameters
        text = f'{self.base_parameters - friction} base parameters'
        return f'{text} and {friction} of friction and offset' if friction else text

    def summary(self) -> str:
        """Return the result in a few sentences: criteria, size of the problem, active limits."""
        found = self.excitation
        lines = [
            f'{self.counted}, {self.trajectory.harmonics} harmonics',
            f'period {self.trajectory.period:g} s',
            f'condition number {found.condition:.4g} (SI), {found.condition_scaled:.4g} (columns scaled)',
            f'ln det of the information matrix {found.log_det:.4g}',
        ]
        if self.interrupted:
            lines.append('the optimisation was interrupted; this is the best trajectory until then')
        if self.active:
            lines.append('active limits: ' + '; '.join(peak.bound.label for peak in self.active))
        elif self.peaks:
            lines.append('no limit is active')
        settings = self.config
        if not (settings.workspace_frames or settings.geometry or settings.link_radius > 0.0):
            lines.append(
                'self-collision was not checked'
                + ('' if settings.ground else ', nor was the workspace')
                + ': give workspace_frames, ground, link_radius or geometry, or watch the arm closely'
            )
        return '\n'.join(lines)


def design_to_dict(design: ExcitationDesign) -> dict[str, Any]:
    """Return a design as plain numbers, strings, lists and mappings."""
    return {
        'format': FORMAT,
        'joints': list(design.joint_names),
        'period': design.trajectory.period,
        'harmonics': design.trajectory.harmonics,
        'trajectory': design.trajectory.to_dict(),
        'limits': {item.name: getattr(design.limits, item.name).tolist() for item in fields(design.limits)},
        'criterion': design.config.criterion,
        'criteria': asdict(design.excitation),
        'base_parameters': design.base_parameters,
        'friction_parameters': design.friction_parameters,
        'seed': design.config.seed,
        'interrupted': design.interrupted,
        'evaluations': design.evaluations,
        'active': [{**asdict(peak.bound), 'excess': peak.excess, 'time': peak.time} for peak in design.active],
        'settings': design.config.to_dict(),
    }


def design_from_dict(content: Mapping[str, Any]) -> ExcitationDesign:
    """Rebuild a design from what :func:`design_to_dict` returned; of the peaks, the active ones.

    Raises an ExcitationError if an entry is missing or cannot be used.
    """
    if not isinstance(content, Mapping) or content.get('format') != FORMAT:
        raise ExcitationError(f"expected an excitation with 'format: {FORMAT}'")
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise ExcitationError(f'an excitation needs {", ".join(_KEYS)}; missing: {", ".join(missing)}')
    try:
        trajectory = FourierTrajectory.from_dict(content['trajectory'])
        joints = tuple(str(name) for name in content['joints'])
        limits = JointLimits(**content['limits'])
        if not len(joints) == trajectory.n == len(limits.lower):
            raise ExcitationError(
                f'{len(joints)} joints, but a trajectory of {trajectory.n} and limits of {len(limits.lower)}'
            )
        advice = 'the file was changed after it was written; design anew, or correct it'
        for name, actual in (('period', trajectory.period), ('harmonics', trajectory.harmonics)):
            if name in content and not math.isclose(float(content[name]), actual, rel_tol=1e-6):
                raise ExcitationError(f'{name} is {content[name]}, but the trajectory has {actual:g}; {advice}')
        extremes, times = trajectory_extremes(trajectory)
        for order, (quantity, _, lower, upper) in enumerate(sides_of(limits)):
            for j, name in enumerate(joints):
                low, high = extremes[order, j]
                slack = _SLACK * max(abs(low), abs(high), 1e-3)
                side = 1 if high > upper[j] + slack else 0
                if side or low < lower[j] - slack:
                    when = times[order, j, side]
                    raise ExcitationError(
                        f"{quantity} of joint '{name}' is {extremes[order, j, side]:.6g} at t = {when:.3f} s, "
                        f"the file's own limit is {(lower, upper)[side][j]:.6g}; {advice}"
                    )
        return ExcitationDesign(
            trajectory=trajectory,
            joint_names=joints,
            excitation=Excitation(**{name: float(value) for name, value in content['criteria'].items()}),
            config=ExcitationConfig.from_dict(content['settings']),
            limits=limits,
            base_parameters=int(content['base_parameters']),
            friction_parameters=int(content.get('friction_parameters', 0)),
            peaks=tuple(
                Peak(
                    bound=Bound(**{item.name: entry[item.name] for item in fields(Bound)}),
                    excess=float(entry['excess']),
                    time=float(entry['time']),
                )
                for entry in content.get('active', ())
            ),
            interrupted=bool(content.get('interrupted', False)),
            evaluations=int(content.get('evaluations', 0)),
        )
    except ExcitationError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, ModelError) as cause:
        raise ExcitationError(f'the excitation cannot be read: {cause}') from cause


def save_excitation(design: ExcitationDesign, path: str | Path) -> None:
    """Write a design as YAML, whole or not at all.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    write_text(path, yaml.safe_dump(design_to_dict(design), sort_keys=False, default_flow_style=None, width=110))


def load_excitation(path: str | Path) -> ExcitationDesign:
    """Read a design from YAML.

    Raises
    ------
    ExcitationError
        If the file is absent, is not YAML, or is not an excitation.
    """
    content = read_yaml(path, 'excitation file', ExcitationError)
    with refusing(f"excitation file '{path}'", ExcitationError):
        try:
            return design_from_dict(content)
        except ExcitationError as cause:
            raise ExcitationError(f"excitation file '{path}': {cause}") from cause
