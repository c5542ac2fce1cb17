# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""MJCF: the identified arm for MuJoCo, as a file of its own or put into a given one."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.export.identified import require_accepted
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters, transform_inertial_parameters
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import nearest_rotation, rigid_transform
from robotid_ros.model.urdf_edit import quoted, spelled
from robotid_ros.simulation.mjcf import body_lines, full_inertia, load_mujoco
from robotid_ros.simulation.servo import Servo

_SAME = 1e-4  # largest distance [m, or sine] of two descriptions of the same joint axis
# MuJoCo's default friction is soft: below its level a joint creeps, the faster the less inertia it has. With this
# impedance it is dry; MuJoCo itself raises the time constant to two of its steps.
_DRY = {'solreffriction': '0.002 1', 'solimpfriction': '0.9999 0.9999 0.001 0.5 1'}


def mjcf_of(arm: RobotModel, servo: Servo | None = None) -> str:
    """Return an arm in MuJoCo's format: links, joints with armature, damping, frictionloss and limits, and motors.

    Visible shapes are capsules from joint to joint, without mass and contacts. For the arm see
    :func:`robotid_ros.export.identified.identified_arm`. A ``servo`` makes, in place of motors, a position and a
    velocity actuator for each joint, with the identified gains. What MuJoCo's actuators have no place for, the delay,
    the play and the added torque, stands in a comment. Raises a ModelError if a link has no mass, or a gain is
    negative.
    """
    require_accepted(arm, servo)
    joints = [_joint_numbers(arm, i) for i in range(arm.n)]
    for numbers, ends in zip(joints, zip(arm.limits.lower, arm.limits.upper, strict=True), strict=True):
        if np.isfinite(ends).all():
            numbers['range'] = spelled(ends)
    shapes = [
        f'<geom type="capsule" fromto="0 0 0 {spelled(end)}" size="0.03" contype="0" conaffinity="0"/>'
        if np.linalg.norm(end) > 0.02
        else ''
        for end in (*arm.placements[1:, :3, 3], arm.tip[:3, 3])
    ]
    lines = [
        f'<mujoco model={quoted(arm.name)}>',
        '  <compiler angle="radian" autolimits="true"/>',
        f'  <option gravity="{spelled(arm.gravity)}"/>',
        '  <worldbody>',
        *body_lines(arm, joints, shapes),
        '  </worldbody>',
        '  <actuator>',
    ]
    if servo is not None:
        lines.append(
            f'    <!-- Give the command {servo.delay:.4g} s late: its position to each joint, its derivative to '
            f'_velocity. Add (qfrc_applied) these shares of qfrc_bias: {spelled(servo.share)}; and these torques: '
            f'{spelled(servo.offset)}. No error within half of these plays makes a torque: {spelled(servo.play)} -->'
        )
    for k, (joint, effort) in enumerate(zip(arm.joint_names, arm.limits.effort, strict=True)):
        name = quoted(joint)
        bounds = f' ctrlrange="{spelled([-effort, effort])}"' if np.isfinite(effort) else ''
        if servo is None:
            lines.append(f'    <motor name={name} joint={name}{bounds}/>')
        else:  # kp (ctrl - q), and kd (ctrl - dq) of a second one
            lines.append(f'    <position name={name} joint={name} kp="{spelled(servo.stiffness[k])}"/>')
            velocity = f'name={quoted(f"{joint}_velocity")} joint={name} kv="{spelled(servo.damping[k])}"'
            lines.append(f'    <velocity {velocity}/>')
    return '\n'.join([*lines, '  </actuator>', '</mujoco>', ''])


def _joint_numbers(arm: RobotModel, k: int) -> dict[str, str]:
    """Return what was identified of a joint, and its largest effort, as attributes."""
    numbers = {
        'armature': spelled(arm.rotor_inertia[k]),
        'damping': spelled(arm.damping[k]),
        'frictionloss': spelled(arm.friction[k]),
        **_DRY,
    }
    effort = arm.limits.effort[k]
    return {**numbers, 'actuatorfrcrange': spelled([-effort, effort])} if np.isfinite(effort) else numbers


def mjcf_with(arm: RobotModel, path: str | Path) -> str:
    """Return a given MJCF with the identified numbers; meshes and everything else stay.

    The bodies' frames may differ from the links' of the arm: the joints' axes tell how. The file's
    joints have to be the arm's, by name and by place at zero.

    ``path``: an MJCF with the arm. Raises a ModelError if the file cannot be read, a joint is absent, or has another
    place than in the arm's description. Raises a MissingDependencyError without MuJoCo.
    """
    mujoco = load_mujoco('edit an MJCF')
    require_accepted(arm)
    path = Path(path)
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
        parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
        root = ElementTree.fromstring(path.read_bytes(), parser)
    except (ValueError, OSError, ElementTree.ParseError) as cause:
        raise ModelError(f'{path}: {" ".join(str(cause).split())[:200]}') from cause
    named = {joint.get('name', ''): (body, joint) for body in root.iter('body') for joint in body.findall('joint')}
    for name in arm.joint_names:
        if name not in named:
            known = ', '.join(filter(None, named)) or 'none'
            raise ModelError(f"{path} has no joint '{name}'; it has: {known}; joints of included files do not count")
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    mujoco.mj_kinematics(model, data)
    numbers = [model.joint(name).id for name in arm.joint_names]
    owners = [int(model.jnt_bodyid[number]) for number in numbers]
    links = link_transforms(arm, np.zeros((1, arm.n)))[0]
    base = _alignment(arm, links, data.xaxis[numbers], data.xanchor[numbers])
    if base is None:
        raise ModelError(f'{path}: its joints are not where those of {arm.name} are at zero; give the MJCF of this arm')
    for k, (name, owner) in enumerate(zip(arm.joint_names, owners, strict=True)):
        body, joint = named[name]
        frame = rigid_transform(data.xmat[owner].reshape(3, 3), data.xpos[owner])
        relative = np.linalg.inv(frame) @ base @ links[k]
        moved = transform_inertial_parameters(arm.inertial[k], relative[:3, :3], relative[:3, 3])
        mass, com, tensor = split_inertial_parameters(moved)
        _set_inertial(body, pos=spelled(com), mass=spelled(mass), fullinertia=full_inertia(tensor))
        for attached in _attached(body):
            _set_inertial(attached, pos='0 0 0', mass='0', diaginertia='0 0 0')
        joint.attrib.update(_joint_numbers(arm, k))
        if np.isfinite(arm.limits.effort[k]):
            joint.set('actuatorfrclimited', 'true')
    for compiler in root.iter('compiler'):
        if compiler.get('inertiafromgeom') == 'true':
            compiler.set('inertiafromgeom', 'auto')
        compiler.attrib.pop('settotalmass', None)  # it would scale every mass
    return ElementTree.tostring(root, encoding='unicode') + '\n'


def _set_inertial(body: ElementTree.Element, **attributes: str) -> None:
    """Replace a body's inertial element."""
    for old in body.findall('inertial'):
        body.remove(old)
    body.insert(0, ElementTree.Element('inertial', attributes))


def _attached(body: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Return the bodies fixed to a body: they are part of its identified parameters and weigh nothing."""
    for child in body.findall('body'):
        if child.find('joint') is None and child.find('freejoint') is None:
            yield child
            yield from _attached(child)


def _alignment(arm: RobotModel, links: Array, axes: Array, anchors: Array) -> Array | None:
    """Return the arm's base frame in the file's world, from the joints' axes; None where they do not fit.

    The rotation takes directions to directions; the translation is the least-squares one of points
    that may slide along their axes.
    """
    directions = np.einsum('kij,kj->ki', links[:, :3, :3], arm.axes)
    points = links[:, :3, 3]
    offsets = np.diff(points, axis=0)
    there = np.concatenate([axes, _across(np.diff(anchors, axis=0), axes)])
    rotation = nearest_rotation(there.T @ np.concatenate([directions, _across(offsets, directions)]))
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    gaps = anchors - points @ rotation.T
    shift = np.linalg.lstsq(across.reshape(-1, 3), np.einsum('kij,kj->ki', across, gaps).ravel(), rcond=None)[0]
    misses = [np.abs(axes - directions @ rotation.T).max(), np.abs(np.einsum('kij,kj->ki', across, gaps - shift)).max()]
    return rigid_transform(rotation, shift) if max(misses) < _SAME else None


def _across(offsets: Array, axes: Array) -> Array:
    """Return what of the way from one axis to a parallel next one lies across them; zero for other axes."""
    parallel = np.abs(np.einsum('ki,ki->k', axes[:-1], axes[1:])) > 1.0 - 1e-9
    along = np.einsum('ki,ki->k', offsets, axes[1:])[:, None] * axes[1:]
    return np.where(parallel[:, None], offsets - along, 0.0)
