# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An identified arm in every format, by name."""

from pathlib import Path

from robotid_ros.errors import ModelError
from robotid_ros.export.identified import identified_arm, identified_model, loss_of, require_usable
from robotid_ros.export.mjcf import mjcf_of, mjcf_with
from robotid_ros.export.pinocchio_model import pinocchio_source
from robotid_ros.export.ros2_control import package_files
from robotid_ros.export.sdf import sdf_of
from robotid_ros.export.source_code import LANGUAGES, source_files
from robotid_ros.export.usd import usd_of
from robotid_ros.files import write_files
from robotid_ros.identification import IdentificationResult, TorquePredictor, calibrated_urdf
from robotid_ros.model import RobotModel
from robotid_ros.simulation.servo import Servo

_WHOLE = (*LANGUAGES, 'ros2_control')  # hold the identified torque with nothing lost
_ROTOR_INERTIA = ('mjcf', 'usd', 'pinocchio')  # have it
_REMARKS = {
    'urdf': 'simulators differ in whether they use the friction of a URDF',
    'sdf': 'set gravity in the world',
    'pinocchio': 'rnea leaves friction out: add friction(dq)',
    'ros2_control': 'ripple, if it has some, is left out',
}
FORMATS = ('urdf', 'mjcf', 'usd', 'sdf', 'pinocchio', *_WHOLE)


def _files(
    model: RobotModel, result: IdentificationResult, to: str, given: str | Path | None, servo: Servo | None
) -> dict[str, str]:
    """Return the texts of a format by file name."""
    if to == 'urdf':
        return {'calibrated.urdf': calibrated_urdf(model, result)}
    if to == 'ros2_control':
        return package_files(model, result)
    if to in LANGUAGES:
        return source_files(identified_model(model, result), to)
    arm = identified_arm(model, result)
    if to == 'mjcf':
        return {'calibrated.xml': mjcf_of(arm, servo) if given is None else mjcf_with(arm, Path(given))}
    if to == 'usd':
        return {'calibrated.usda': usd_of(arm, servo)}
    if to == 'sdf':
        return {'calibrated.sdf': sdf_of(arm)}
    return {'pinocchio_model.py': pinocchio_source(arm)}


def export(
    model: RobotModel,
    result: IdentificationResult,
    to: str,
    folder: str | Path,
    *,
    mjcf: str | Path | None = None,
    servo: Servo | None = None,
    force: bool = False,
) -> tuple[tuple[Path, ...], str]:
    """Write an identified arm in a format, one of FORMATS, into a folder, made if need be.

    The model is the arm as it was described for the identification. ``mjcf``, for ``'mjcf'``: a file to put the numbers
    into, with everything else kept. ``servo``, for ``'usd'``, and ``'mjcf'`` without such a file: see
    :func:`robotid_ros.export.mjcf.mjcf_of`. ``force``: whether to export a result that is marked as not usable.

    Returns what was written, and how its torque differs from the identified one, with the number for this arm.

    Raises a RobotIdError if the format is unknown, the result is not usable or belongs to another arm, or nothing can
    be written.
    """
    if to not in FORMATS:
        raise ModelError(f"format '{to}' is unknown; there are: {', '.join(FORMATS)}", name=to, expected=FORMATS)
    if mjcf is not None and to != 'mjcf':
        raise ModelError(f'a given MJCF (--mjcf) belongs to the format mjcf, not to {to}')
    if servo is not None and (to not in ('mjcf', 'usd') or mjcf is not None):
        raise ModelError('servos belong to the format usd, and to mjcf without a given MJCF')
    require_usable(result, force=force)
    TorquePredictor(model, result)  # it refuses the result of another arm
    files = _files(model, result, to, mjcf, servo)
    if to in _WHOLE:
        statement = f'the whole identified torque, with friction {result.friction.name}'
    else:
        statement = str(loss_of(model, result, rotor_inertia=to in _ROTOR_INERTIA))
    return write_files(folder, files), '; '.join(filter(None, (statement, _REMARKS.get(to))))
