# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""USD: an identified arm for Isaac Sim and Isaac Lab, with the joint parameters of PhysX."""

import re

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.export.identified import require_accepted
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import nearest_rotation, quaternion_of_rotation
from robotid_ros.model.urdf_edit import spelled
from robotid_ros.simulation.servo import Servo


def usd_of(arm: RobotModel, servo: Servo | None = None) -> str:
    """Return an arm as USD text: an articulation fixed to the world at its base.

    Revolute joints count degrees in USD. Armature, friction and largest velocity are those of ``PhysxJointAxisAPI``,
    and the armature that of ``PhysxJointAPI``, too, for older releases; limits, gains and largest torque are those of
    UsdPhysics. Visible shapes are capsules from joint to joint, which do not collide.

    ``arm``: see :func:`robotid_ros.export.identified.identified_arm`. ``servo``: its stiffness and damping; without one
    the drives have none. What drives have no place for, delay and added torque, stands in a comment. Raises a
    ModelError if a link has no mass, or a gain is negative.
    """
    require_accepted(arm, servo)
    taken: set[str] = set()
    links = [_identifier(name, taken) for name in (arm.base_name, *arm.link_names)]
    joints = [_identifier(name, taken) for name in arm.joint_names]
    root = _identifier(arm.name, set())
    at_zero = np.concatenate([np.eye(4)[None], link_transforms(arm, np.zeros((1, arm.n)))[0]])

    size = float(np.linalg.norm(arm.gravity))
    direction = arm.gravity / size if size > 0.0 else np.array([0.0, 0.0, -1.0])
    lines = [
        '#usda 1.0',
        '(',
        f'    defaultPrim = "{root}"',
        '    metersPerUnit = 1',
        '    kilogramsPerUnit = 1',
        '    upAxis = "Z"',
        ')',
        '',
        'def PhysicsScene "scene"',  # beside the robot: stages that refer to this file get the robot alone
        '{',
        f'    vector3f physics:gravityDirection = ({_list(direction)})',
        f'    float physics:gravityMagnitude = {spelled(size)}',
        '}',
        '',
        f'def Xform "{root}" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])',
        '{',
    ]
    for k, link in enumerate(links):
        inertial = arm.base_inertial if k == 0 else arm.inertial[k - 1]
        end = (arm.placements[k] if k < arm.n else arm.tip)[:3, 3]
        lines += _link(link, at_zero[k], inertial, end)
    lines += [
        '    def PhysicsFixedJoint "fixed_to_world"',
        '    {',
        f'        rel physics:body1 = </{root}/{links[0]}>',
        '    }',
    ]
    for k, joint in enumerate(joints):
        lines += _joint(arm, k, joint, (f'/{root}/{links[k]}', f'/{root}/{links[k + 1]}'), servo)
    return '\n'.join([*lines, '}', ''])


def _link(name: str, place: Array, inertial: Array, end: Array) -> list[str]:
    lines = [
        f'    def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])',
        '    {',
        f'        quatd xformOp:orient = ({_list(quaternion_of_rotation(place[:3, :3]))})',
        f'        double3 xformOp:translate = ({_list(place[:3, 3])})',
        '        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]',
    ]
    mass, com, tensor = split_inertial_parameters(inertial)
    if mass <= 0.0:  # a base without mass is fixed all the same
        mass, com, tensor = np.ones(()), np.zeros(3), np.eye(3)
    moments, axes = np.linalg.eigh(tensor)
    lines += [
        f'        float physics:mass = {spelled(mass)}',
        f'        point3f physics:centerOfMass = ({_list(com)})',
        f'        float3 physics:diagonalInertia = ({_list(moments)})',
        f'        quatf physics:principalAxes = ({_list(quaternion_of_rotation(axes * np.linalg.det(axes)))})',
    ]
    length = float(np.linalg.norm(end))
    if length > 0.02:
        lines += [
            '        def Capsule "shape"',
            '        {',
            f'            double height = {spelled(length)}',
            '            double radius = 0.03',
            '            uniform token axis = "X"',
            f'            quatd xformOp:orient = ({_list(quaternion_of_rotation(_along(end / length)))})',
            f'            double3 xformOp:translate = ({_list(0.5 * end)})',
            '            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]',
            '        }',
        ]
    return [*lines, '    }']


def _joint(arm: RobotModel, k: int, name: str, bodies: tuple[str, str], servo: Servo | None) -> list[str]:
    revolute, limits = arm.joint_types[k] == 'revolute', arm.limits
    kind, axis = ('Revolute', 'angular') if revolute else ('Prismatic', 'linear')
    unit = 180.0 / np.pi if revolute else 1.0  # of a length or angle in USD
    turn, place = _along(arm.axes[k]), arm.placements[k]
    numbers = {
        'physics:lowerLimit': unit * limits.lower[k],
        'physics:upperLimit': unit * limits.upper[k],
        f'drive:{axis}:physics:maxForce': limits.effort[k],
        f'drive:{axis}:physics:stiffness': 0.0 if servo is None else servo.stiffness[k] / unit,
        f'drive:{axis}:physics:damping': 0.0 if servo is None else servo.damping[k] / unit,
        f'physxJointAxis:{axis}:armature': arm.rotor_inertia[k],
        f'physxJointAxis:{axis}:staticFrictionEffort': arm.friction[k],
        f'physxJointAxis:{axis}:dynamicFrictionEffort': arm.friction[k],
        f'physxJointAxis:{axis}:viscousFrictionCoefficient': arm.damping[k] / unit,
        f'physxJointAxis:{axis}:maxJointVelocity': unit * limits.velocity[k],
        'physxJoint:armature': arm.rotor_inertia[k],
    }
    schemas = f'"PhysicsDriveAPI:{axis}", "PhysxJointAPI", "PhysxJointAxisAPI:{axis}"'
    lines = [f'    def Physics{kind}Joint "{name}" (prepend apiSchemas = [{schemas}])', '    {']
    if servo is not None:
        lines.append(
            f'        # Give the command {servo.delay:.4g} s late; add {servo.share[k]:.4g} of the torque of gravity '
            f'and Coriolis forces, and {servo.offset[k]:.4g}.'
        )
    lines += [
        f'        rel physics:body0 = <{bodies[0]}>',
        f'        rel physics:body1 = <{bodies[1]}>',
        '        uniform token physics:axis = "X"',
        f'        point3f physics:localPos0 = ({_list(place[:3, 3])})',
        f'        quatf physics:localRot0 = ({_list(quaternion_of_rotation(place[:3, :3] @ turn))})',
        '        point3f physics:localPos1 = (0, 0, 0)',
        f'        quatf physics:localRot1 = ({_list(quaternion_of_rotation(turn))})',
        f'        uniform token drive:{axis}:physics:type = "force"',
    ]
    return [*lines, *(f'        float {key} = {spelled(x)}' for key, x in numbers.items() if np.isfinite(x)), '    }']


def _along(axis: Array) -> Array:
    """Return a rotation that takes x to a unit axis."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    across = np.cross(axis, other) / np.linalg.norm(np.cross(axis, other))
    return nearest_rotation(np.stack([axis, across, np.cross(axis, across)], axis=1))


def _list(values: Array) -> str:
    return spelled(values).replace(' ', ', ')


def _identifier(name: str, taken: set[str]) -> str:
    """Return a name as a prim may have it, and none that is taken."""
    own = re.sub(r'[^A-Za-z0-9_]', '_', name)
    own = own if re.match(r'[A-Za-z_]', own) else f'_{own}'
    while own in taken:
        own += '_'
    taken.add(own)
    return own
