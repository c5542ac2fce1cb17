# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""An identified arm in every format, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from robotid_ros.errors import ModelError
from robotid_ros.export.identified import identified_arm, identified_model, loss_of, require_usable
from robotid_ros.export.mjcf import mjcf_of, mjcf_with
from robotid_ros.export.pinocchio_model import pinocchio_source
from robotid_ros.export.ros2_control import package_files
from robotid_ros.export.sdf import sdf_of
from robotid_ros.export.source_code import source_files
from robotid_ros.export.usd import usd_of
from robotid_ros.files import write_files
from robotid_ros.identification import IdentificationResult, TorquePredictor, calibrated_urdf
from robotid_ros.model import RobotModel
from robotid_ros.simulation.servo import Servo


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written, and how its torque differs from the identified one, with the number for this arm."""

    paths: tuple[Path, ...]
    statement: str


_Files: TypeAlias = Callable[[RobotModel, IdentificationResult], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    files: _Files
    whole: bool = False  # holds the identified torque with nothing lost
    rotor_inertia: bool = False
    servos: bool = False
    remark: str = ''


def _of_arm(name: str, text: Callable[[RobotModel], str]) -> _Files:
    return lambda model, result: {name: text(identified_arm(model, result))}


def _source(language: str) -> _Files:
    return lambda model, result: source_files(identified_model(model, result), language)


def _formats(given: Path | None, servo: Servo | None) -> dict[str, _Format]:
    return {
        'urdf': _Format(
            files=lambda model, result: {'calibrated.urdf': calibrated_urdf(model, result)},
            remark='simulators differ in whether they use the friction of a URDF',
        ),
        'mjcf': _Format(
            files=_of_arm(
                'calibrated.xml', lambda arm: mjcf_of(arm, servo) if given is None else mjcf_with(arm, given)
            ),
            rotor_inertia=True,
            servos=given is None,
        ),
        'usd': _Format(
            files=_of_arm('calibrated.usda', lambda arm: usd_of(arm, servo)), rotor_inertia=True, servos=True
        ),
        'sdf': _Format(files=_of_arm('calibrated.sdf', sdf_of), remark='set gravity in the world'),
        'pinocchio': _Format(
            files=_of_arm('pinocchio_model.py', lambda arm: pinocchio_source(arm, name='pinocchio_model')),
            rotor_inertia=True,
            remark='rnea leaves friction out: add friction(dq)',
        ),
        'c': _Format(files=_source('c'), whole=True),
        'cpp': _Format(files=_source('cpp'), whole=True),
        'python': _Format(files=_source('python'), whole=True),
        'ros2_control': _Format(files=package_files, whole=True, remark='ripple, if it has some, is left out'),
    }


FORMATS = tuple(_formats(None, None))


def export(
    model: RobotModel,
    result: IdentificationResult,
    to: str,
    folder: str | Path,
    *,
    mjcf: str | Path | None = None,
    servo: Servo | None = None,
    force: bool = False,
) -> Exported:
    """Write an identified arm in a format, one of FORMATS, into a folder, made if need be.

    The model is the arm as it was described for the identification. ``mjcf``, for ``'mjcf'``: a file to put the numbers
    into, with everything else kept. ``servo``, for ``'usd'``, and ``'mjcf'`` without such a file: see
    :func:`robotid_ros.export.mjcf.mjcf_of`. ``force``: whether to export a result that is marked as not usable.

    Raises a RobotIdError if the format is unknown, the result is not usable or belongs to another arm, or nothing can
    be written.
    """
    if to not in FORMATS:
        raise ModelError(f"format '{to}' is unknown; there are: {', '.join(FORMATS)}", name=to, expected=tuple(FORMATS))
    if mjcf is not None and to != 'mjcf':
        raise ModelError(f'a given MJCF (--mjcf) belongs to the format mjcf, not to {to}')
    form = _formats(None if mjcf is None else Path(mjcf), servo)[to]
    if servo is not None and not form.servos:
        raise ModelError('servos belong to the format usd, and to mjcf without a given MJCF')
    require_usable(result, force=force)
    TorquePredictor(model, result)  # it refuses the result of another arm
    files = form.files(model, result)
    if form.whole:
        statement = f'the whole identified torque, with friction {result.friction_name or "none"}'
    else:
        statement = str(loss_of(model, result, rotor_inertia=form.rotor_inertia))
    return Exported(paths=write_files(folder, files), statement='; '.join(filter(None, (statement, form.remark))))
