# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The whole torque of an identified arm, rigid body and friction, as formulas for code and compiled kernels."""

import numpy as np

from robotid_ros.dynamics import MinimalModel, minimal_model
from robotid_ros.dynamics.codegen.expression import Op
from robotid_ros.dynamics.codegen.minimal_model import JointFriction
from robotid_ros.dynamics.codegen.source import as_comment
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.terms import Functions
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.progress import Progress

# A column that the columns before it leave less of than this is round-off: generated torques are to equal those of
# TorquePredictor to 1e-12.
_TOLERANCE = 1e-12

_SYMBOLIC = Functions(
    tanh=lambda x: x.function(Op.TANH),
    exp=lambda x: x.function(Op.EXP),
    abs=lambda x: x.function(Op.ABS),
    sign=lambda x: x.function(Op.SIGN),
    atan=lambda x: x.function(Op.ATAN),
    sin=lambda x: x.function(Op.SIN),
    cos=lambda x: x.function(Op.COS),
)


def identified_model(
    model: RobotModel, result: IdentificationResult, *, snap: float = 1e-12, progress: Progress | None = None
) -> MinimalModel:
    """Return the formulas of an identified arm, with the identified parameters for its own.

    tau = Y_b(q, dq, ddq) beta + tau_f(q, dq, load = Y_b beta): what :class:`TorquePredictor` returns,
    to round-off, whatever the friction model. Friction at rest, where the result has some, is in the generated
    function ``recorded_torque``, which is :meth:`TorquePredictor.measured_torque` at full bandwidth; of friction that
    builds up along the way it knows the last direction only.

    Parameters
    ----------
    model : RobotModel
    result : IdentificationResult
    snap : float
        Sines and relative lengths taken as zero; see :func:`robotid_ros.dynamics.minimal_model`.
    progress : callable, optional

    Raises
    ------
    RobotIdError
        If the result belongs to another arm.
    """
    predictor = TorquePredictor(model, result)  # refuses the result of another arm
    minimal = minimal_model(
        predictor.model,
        rotor_inertia=result.has_rotor_inertia,
        friction=_joint_friction(result) if result.friction_names else None,
        snap=snap,
        tolerance=max(_TOLERANCE, snap),
        progress=progress,
    )
    standard = np.zeros(len(minimal.base.columns))
    standard[predictor.base.independent] = result.base_values
    return minimal.with_parameters(np.concatenate([minimal.base.map @ standard, result.friction_values.ravel()]))


def described_model(model: RobotModel, *, snap: float = 1e-12, progress: Progress | None = None) -> MinimalModel:
    """Return the formulas of an arm with the parameters of its description, viscous and Coulomb friction included."""
    tolerance = max(1e-9, snap)
    return minimal_model(
        model, rotor_inertia=True, viscous=True, coulomb=True, snap=snap, tolerance=tolerance, progress=progress
    )


def require_usable(result: IdentificationResult, *, force: bool) -> None:
    """Refuse a result that its identification calls unusable.

    Raises
    ------
    IdentificationError
        With the result's reason.
    """
    if not result.usable and not force:
        raise IdentificationError(f'the result is not usable: {result.reason}; --force exports it all the same')


def _joint_friction(result: IdentificationResult) -> JointFriction:
    friction, rest = result.friction, result.rest_friction
    return JointFriction(
        name=result.friction_name,
        parameters=tuple(
            tuple(
                (f'{name} of {as_comment(joint)}', unit)
                for name, unit in zip(result.friction_names, units, strict=True)
            )
            for joint, units in zip(result.joint_names, result.friction_units, strict=True)
        ),
        torque=lambda joint, velocity, parameters, load, position: friction.of_joint(joint).expression(
            velocity, parameters, load, position, functions=_SYMBOLIC
        ),
        rest=None if rest is None else np.column_stack([rest.speed, rest.torque]),
    )
