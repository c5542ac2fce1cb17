# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of an identification from a fit: metrics, units, provenance.

The calibrated URDF: the input description with identified numbers.
"""

import platform
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import scipy

import robotid_ros
from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import BaseParameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import Rows
from robotid_ros.identification.least_squares import essential_parameters
from robotid_ros.identification.physical import PhysicalFit
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import ENOUGH, Samples
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.inertia import physical_violation, transform_inertial_parameters
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_edit import edited_urdf


def assembled(
    fit: TorqueFit, physical: PhysicalFit, rows: Rows, model: RobotModel, config: IdentificationConfig
) -> IdentificationResult:
    """Return the result of a fit that nobody has judged yet."""
    base, samples = rows.base, rows.samples
    count = len(fit.base_values)
    std = fit.std
    friction: FrictionModel = fit.friction
    values = np.concatenate([fit.base_values, fit.friction_parameters.ravel()])
    return IdentificationResult(
        robot=model.name,
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        link_names=model.link_names,
        gravity=model.gravity,
        base_names=base.names,
        base_combinations=base.combinations,
        base_units=base.units,
        base_values=fit.base_values,
        base_std=std[:count],
        base_essential=tuple(bool(x) for x in essential_parameters(fit.covariance, values, std, count)),
        inertial=physical.inertial,
        rotor_inertia=physical.rotor_inertia,
        has_rotor_inertia=config.rotor_inertia,
        drives=model.drives if model.has_coupled_drives else None,
        friction=friction,
        friction_values=fit.friction_parameters,
        friction_std=std[count:].reshape(model.n, -1),
        plain_friction=plain_friction(base, friction, fit.base_values, fit.friction_parameters, samples, model.drives),
        torque_bandwidth=fit.bandwidth,
        condition_si=fit.condition_si,
        condition_scaled=fit.condition_scaled,
        usable=False,
        reason='nobody has judged it',
        metrics={},
    )


def provenance_of(
    training: list[Dataset],
    judges: dict[str, list[Dataset]],
    config: IdentificationConfig,
    friction_data: Sequence[FrictionStrokes] = (),
) -> dict[str, object]:
    """Return what a result was made from: data, settings, versions, seed."""

    def described(datasets: list[Dataset]) -> list[dict[str, object]]:
        return [
            {'sources': list(d.sources), 'samples': len(d), 'rate': d.rate, 'cutoff': d.cutoff, **dict(d.provenance)}
            for d in datasets
        ]

    return {
        'training': described(training),
        'friction_data': [{'strokes': each.count, **dict(each.provenance)} for each in friction_data],
        **{name: described(judges.get(name, [])) for name in ('validation', 'test')},
        'settings': asdict(config),
        'versions': {
            'robotid_ros': robotid_ros.__version__,
            'python': platform.python_version(),
            'numpy': np.__version__,
            'scipy': scipy.__version__,
        },
        'seed': config.seed,
    }


def plain_friction(
    base: BaseParameters,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    samples: Samples,
    drives: Array,
) -> Array:
    """Return the Coulomb and viscous friction closest to a friction model along a motion.

        min sum w (tau_f(v, load, q) - fc sign v - fv v - o)^2,  fc, fv >= 0

    They differ from the model's own Coulomb and viscous parameters, which are only a part of the friction beside
    an arctangent, a Stribeck or a load term. The offset o is not returned.

    Parameters
    ----------
    base, friction : BaseParameters, FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    samples : Samples
        Positions, speeds and loads along the motion.
    drives : ndarray, shape (n, n)
        Motors over joints; the friction returned is that of the joints.

    Returns
    -------
    ndarray, shape (n, 2)
        Coulomb friction [N m] and viscous friction [N m s/rad].
    """
    from scipy.optimize import nnls  # not at the top: see robotid_ros.signals.filtering

    part = samples.thinned(ENOUGH)
    load = base.regressor(part.q, part.dq, part.ddq) @ base_values
    torque = friction.torque(part.dq, friction_parameters, load, part.q) @ drives
    speeds = part.dq @ np.linalg.inv(drives).T
    result = np.empty((part.n, 2))
    for j in range(part.n):
        speed, root = speeds[:, j], np.sqrt(part.weight[:, j])
        ones = np.ones_like(speed)
        rows = np.stack([np.sign(speed), speed, ones, -ones], axis=1)
        result[j] = nnls(root[:, None] * rows, root * torque[:, j])[0][:2]
    return result


def link_inertials(model: RobotModel, inertial: Array) -> dict[str, Array]:
    """Return identified parameters of the moving bodies, shape (n, 10), as those of the links that change.

    A moving link and what is fixed to it form one body. What is attached keeps its described
    parameters and the main link gets the rest, where that rest is a real body; otherwise the main
    link gets everything and the attached links become massless.
    """
    result: dict[str, Array] = {}
    for k, link in enumerate(model.link_names):
        attached = model.attached[k] if model.attached else ()
        lumped = [
            transform_inertial_parameters(part.inertial, part.placement[:3, :3], part.placement[:3, 3])
            for part in attached
            if part.name != link
        ]
        rest = inertial[k] - np.sum(lumped, axis=0) if lumped else inertial[k]
        if rest[9] > 0.0 and physical_violation(rest) is None:
            result[link] = rest
            continue
        result[link] = inertial[k]
        for part in attached:
            if part.name != link and np.any(part.inertial != 0.0):
                result[part.name] = np.zeros(10)
    return result


def calibrated_urdf(model: RobotModel, result: IdentificationResult) -> str:
    """Return the URDF the model came from with identified inertial parameters and joint friction.

    Everything else, comments included, stays as it is. ``joint/dynamics`` gets the viscous and
    Coulomb friction that are closest to the friction model along the training motion.

    Raises
    ------
    IdentificationError
        If the model did not come from a URDF.
    """
    if model.source is None:
        raise IdentificationError('a calibrated URDF needs a robot that was read from a URDF')
    inertials = link_inertials(model, result.inertial)
    return edited_urdf(model.source, inertials=inertials, dynamics=_joint_dynamics(result))


def _joint_dynamics(result: IdentificationResult) -> dict[str, tuple[float, float]]:
    plain = result.plain_friction
    if plain is None:
        return {}
    return {joint: (float(plain[j, 1]), float(plain[j, 0])) for j, joint in enumerate(result.joint_names)}
