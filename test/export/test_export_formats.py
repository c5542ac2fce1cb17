# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Exports loaded by their own engines: MuJoCo, Pinocchio, libsdformat, C++."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from dynamics_helpers import arm, random_inertial
from errors_helpers import refused
from export_helpers import RAIL, identified, states
from identification_helpers import UR10E
from scipy.spatial.transform import Rotation

from robotid_ros.cli import main
from robotid_ros.dynamics import base_parameters, inverse_dynamics
from robotid_ros.errors import IdentificationError, ModelError, ModelWarning
from robotid_ros.export.formats import FORMATS, export
from robotid_ros.export.identified import identified_arm, loss_of
from robotid_ros.export.mjcf import mjcf_of, mjcf_with
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters, transform_inertial_parameters
from robotid_ros.simulation.servo import Servo


def found(model: RobotModel, name: str = 'stribeck+load') -> IdentificationResult:
    """Return a result whose links are heavier than described, with rotors."""
    added = random_inertial(model.n, np.random.default_rng(2))
    heavier = model.with_inertial(model.inertial + added, rotor_inertia=np.linspace(0.2, 1.5, model.n))
    return identified(heavier, name)


@pytest.fixture(params=['ur10e', 'panda', 'rail'])
def model(request: pytest.FixtureRequest) -> RobotModel:
    if request.param != 'rail':
        return arm(request.param)
    with pytest.warns(ModelWarning, match='held at zero'):  # the gripper
        return RobotModel.from_urdf(RAIL, tip='hand')


def assert_equal(torque: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def mujoco_torque(path: Path, joints: tuple[str, ...], q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return MuJoCo's inverse dynamics with damping and without dry friction, which is a constraint there."""
    mujoco = pytest.importorskip('mujoco', reason='needs the sim extra')
    scene = mujoco.MjModel.from_xml_path(str(path))
    scene.dof_frictionloss[:] = 0.0
    scene.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    state = mujoco.MjData(scene)
    rows = [scene.joint(name).dofadr[0] for name in joints]
    result = np.empty_like(q)
    for k in range(len(q)):
        state.qpos[rows], state.qvel[rows], state.qacc[rows] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(scene, state)
        result[k] = state.qfrc_inverse[rows]
    return result


def test_mujoco_moves_as_the_result_without_a_loss_but_that_of_friction(model: RobotModel, tmp_path: Path) -> None:
    mujoco = pytest.importorskip('mujoco', reason='needs the sim extra')
    result = found(model)
    paths, said = export(model, result, 'mjcf', tmp_path)
    q, dq, ddq = states(model.n)
    body = identified_arm(model, result)
    got = mujoco_torque(paths[0], model.joint_names, q, dq, ddq)
    assert_equal(got, inverse_dynamics(body, q, dq, ddq) + body.damping * dq)
    scene = mujoco.MjModel.from_xml_path(str(paths[0]))
    np.testing.assert_array_equal(scene.dof_frictionloss, result.plain_friction[:, 0])
    np.testing.assert_array_equal(scene.dof_armature, result.rotor_inertia)
    np.testing.assert_allclose(scene.jnt_actfrcrange[:, 1], model.limits.effort)
    np.testing.assert_allclose(scene.actuator_ctrlrange[:, 1], model.limits.effort)
    assert 'friction beyond Coulomb and viscous' in said
    assert 'rotor inertia' not in said


def test_friction_in_mujoco_is_dry_however_light_the_joint(tmp_path: Path) -> None:
    mujoco = pytest.importorskip('mujoco', reason='needs the sim extra')
    model = arm('ur10e')
    light = np.zeros(6)  # rotor inertia
    plain = np.tile([2.6, 2.5], (6, 1))
    result = replace(found(model), rotor_inertia=light, plain_friction=plain)
    text = mjcf_of(identified_arm(model, result))
    body = identified_arm(model, result)
    for scene in (mujoco.MjModel.from_xml_string(text), mujoco.MjModel.from_xml_string(mjcf_with_text(body, tmp_path))):
        state = mujoco.MjData(scene)
        scene.opt.gravity[:] = 0.0
        for pull, speed in ((2.5, 0.0), (2.6 + 2.5 * 0.3, 0.3)):  # below the friction, and above it
            mujoco.mj_resetData(scene, state)
            state.qfrc_applied[5] = pull
            for _ in range(1000):
                mujoco.mj_step(scene, state)
            assert abs(state.qvel[5]) == pytest.approx(speed, abs=0.003)


def mjcf_with_text(body: RobotModel, folder: Path) -> str:
    """Return what a file of MuJoCo's default friction becomes."""
    soft = re.sub(r' sol(ref|imp)friction="[^"]*"', '', mjcf_of(body))
    (folder / 'given.xml').write_text(soft, encoding='utf-8')
    return mjcf_with(body, folder / 'given.xml')


def test_a_given_mjcf_keeps_what_it_has_and_its_own_frames(tmp_path: Path) -> None:
    pytest.importorskip('mujoco', reason='needs the sim extra')
    model = arm('ur10e')
    result = found(model)
    text = mjcf_of(_in_other_frames(model))
    mesh = '<asset><mesh name="shape" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><light pos="0 0 3"/>'
    text = text.replace('<worldbody>', mesh + '<body name="table" pos="1 0 0"><geom size=".1"/></body>')
    at = text.index('<joint', text.index(f'name="{model.link_names[0]}"'))
    attached = '<body name="cover"><geom type="mesh" mesh="shape" mass="3"/></body>'
    text = text[:at] + '<geom name="skin" type="mesh" mesh="shape"/>' + attached + text[at:]
    text = text.replace('<compiler ', '<compiler settotalmass="3" ')
    (tmp_path / 'given.xml').write_text(text, encoding='utf-8')
    paths, _ = export(model, result, 'mjcf', tmp_path, mjcf=tmp_path / 'given.xml')
    q, dq, ddq = states(model.n)
    body = identified_arm(model, result)
    got = mujoco_torque(paths[0], model.joint_names, q, dq, ddq)
    assert_equal(got, inverse_dynamics(body, q, dq, ddq) + body.damping * dq)
    written = ElementTree.parse(paths[0]).getroot()
    assert written.find(".//geom[@name='skin']") is not None
    assert {each.get('name') for each in written.iter('mesh')} == {'shape'}
    assert written.find(".//body[@name='table']") is not None
    (tmp_path / 'wrong.xml').write_text(mjcf_of(arm('ur5').with_inertial(arm('ur5').inertial)), encoding='utf-8')
    with pytest.raises(ModelError, match='are not where those of'):
        export(model, result, 'mjcf', tmp_path, mjcf=tmp_path / 'wrong.xml')
    (tmp_path / 'other.xml').write_text('<mujoco/>', encoding='utf-8')
    with pytest.raises(ModelError, match="has no joint 'shoulder_pan_joint'; it has: none"):
        export(model, result, 'mjcf', tmp_path, mjcf=tmp_path / 'other.xml')


def _in_other_frames(model: RobotModel) -> RobotModel:
    """Return the same arm on a pedestal, with link frames turned, and moved along the joint axes."""
    rng = np.random.default_rng(7)
    before = np.eye(4)
    before[:3, :3], before[:3, 3] = Rotation.random(random_state=1).as_matrix(), [0.3, -0.2, 0.7]
    placements, axes, inertial = [], [], []
    for k in range(model.n):
        own = np.eye(4)
        own[:3, :3] = Rotation.random(random_state=int(rng.integers(1000))).as_matrix()
        own[:3, 3] = rng.uniform(-0.1, 0.1) * model.axes[k]
        placements.append(before @ model.placements[k] @ own)
        axes.append(own[:3, :3].T @ model.axes[k])
        inverse = np.linalg.inv(own)
        inertial.append(transform_inertial_parameters(model.inertial[k], inverse[:3, :3], inverse[:3, 3]))
        before = inverse
    turned = Rotation.random(random_state=1).as_matrix() @ model.gravity
    return model.with_inertial(np.array(inertial), placements=np.array(placements), axes=np.array(axes), gravity=turned)


def test_pinocchio_moves_as_the_result(model: RobotModel, tmp_path: Path) -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    result = found(model, 'coulomb_viscous')
    paths, _ = export(model, result, 'pinocchio', tmp_path)
    module: dict[str, object] = {}
    exec(paths[0].read_text(encoding='ascii'), module)
    built = module['build_model']()
    data = built.createData()
    q, dq, ddq = states(model.n)
    rigid = np.array([pinocchio.rnea(built, data, *row) for row in zip(q, dq, ddq, strict=True)])
    body = identified_arm(model, result)
    assert_equal(rigid, inverse_dynamics(body, q, dq, ddq))
    assert_equal(rigid + module['friction'](dq), inverse_dynamics(body, q, dq, ddq, friction=True))
    assert list(built.names)[1:] == list(model.joint_names)
    np.testing.assert_allclose(built.upperPositionLimit, model.limits.upper)


def test_a_urdf_says_its_loss(model: RobotModel, tmp_path: Path) -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    result = found(model)
    paths, said = export(model, result, 'urdf', tmp_path)
    whole = pinocchio.buildModelFromXML(paths[0].read_text(encoding='utf-8'))
    locked = [k for k in range(1, whole.njoints) if whole.names[k] not in model.joint_names]
    built = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
    data = built.createData()
    q, dq, ddq = states(model.n)
    rigid = np.array([pinocchio.rnea(built, data, *row) for row in zip(q, dq, ddq, strict=True)])
    assert_equal(rigid, inverse_dynamics(identified_arm(model, result), q, dq, ddq, rotor_inertia=False))
    loss = loss_of(model, result, rotor_inertia=False)
    assert loss.rotor_inertia > 1.0
    assert loss.friction > 1.0
    assert f'by {loss.total:.2g} %' in said
    assert f'rotor inertia {loss.rotor_inertia:.2g} %' in said


def test_a_loss_is_the_difference_of_torques_and_nothing_where_nothing_is_lost() -> None:
    model = arm('ur10e')
    result = found(model, 'coulomb_viscous')
    plain = replace(result, plain_friction=result.friction_values)
    whole = loss_of(model, plain, rotor_inertia=True)
    assert max(whole.total, whole.physical, whole.friction, whole.rotor_inertia) < 1e-9
    without = loss_of(model, plain, rotor_inertia=False)
    assert without.total == pytest.approx(without.rotor_inertia)
    changed = replace(plain, inertial=1.01 * result.inertial)
    assert 0.1 < loss_of(model, changed, rotor_inertia=True).physical < 1.0


def test_usd_reads_the_result(model: RobotModel, tmp_path: Path) -> None:
    pytest.importorskip('pxr', reason='needs usd-core')
    from pxr import Usd, UsdGeom, UsdPhysics

    result = found(model)
    servo = Servo(
        **{
            name: np.linspace(1.0, 2.0, model.n)
            for name in ('stiffness', 'damping', 'share', 'offset', 'play', 'match')
        },
        delay=0.01,
    )
    (path,), _ = export(model, result, 'usd', tmp_path, servo=servo)
    stage = Usd.Stage.Open(str(path))
    body = identified_arm(model, result)
    assert UsdGeom.GetStageUpAxis(stage) == 'Z'
    assert UsdGeom.GetStageMetersPerUnit(stage) == UsdPhysics.GetStageKilogramsPerUnit(stage) == 1.0
    root = stage.GetDefaultPrim()
    assert root.HasAPI(UsdPhysics.ArticulationRootAPI)
    joints = [prim for prim in root.GetChildren() if prim.IsA(UsdPhysics.Joint)][1:]  # after that to the world
    assert [prim.GetName() for prim in joints] == list(model.joint_names)

    def frame(position: object, rotation: object) -> np.ndarray:
        result = np.eye(4)
        whole = [rotation.GetReal(), *rotation.GetImaginary()]
        result[:3, :3] = Rotation.from_quat([*whole[1:], whole[0]]).as_matrix()
        result[:3, 3] = position
        return result

    placements, inertial, below = [], [], np.eye(4)
    for prim in joints:
        joint = UsdPhysics.Joint(prim)
        parent, child = (
            stage.GetPrimAtPath(each.GetTargets()[0]) for each in (joint.GetBody0Rel(), joint.GetBody1Rel())
        )
        before = frame(joint.GetLocalPos0Attr().Get(), joint.GetLocalRot0Attr().Get())
        after = frame(joint.GetLocalPos1Attr().Get(), joint.GetLocalRot1Attr().Get())
        # at zero, the links stand where the joints put them
        here, there = (
            np.array(UsdGeom.Xformable(each).GetLocalTransformation()).T.reshape(4, 4) for each in (parent, child)
        )
        np.testing.assert_allclose(there, here @ before @ np.linalg.inv(after), atol=1e-6)
        placements.append(below @ before)
        below = np.linalg.inv(after)
        mass = UsdPhysics.MassAPI(child)
        axes = frame(mass.GetCenterOfMassAttr().Get(), mass.GetPrincipalAxesAttr().Get())
        tensor = axes[:3, :3] @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axes[:3, :3].T
        own = inertial_parameters(mass.GetMassAttr().Get(), axes[:3, 3], tensor)
        inertial.append(transform_inertial_parameters(own, below[:3, :3], below[:3, 3]))
    read = RobotModel(
        name='read',
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        placements=np.array(placements),
        axes=np.tile([1.0, 0.0, 0.0], (model.n, 1)),
        inertial=np.array(inertial),
        gravity=model.gravity,
    )
    q, dq, ddq = states(model.n)
    expected = inverse_dynamics(body, q, dq, ddq, rotor_inertia=False)
    np.testing.assert_allclose(inverse_dynamics(read, q, dq, ddq), expected, atol=3e-6 * np.abs(expected).max())
    for k, prim in enumerate(joints):
        axis, unit = ('angular', 180.0 / np.pi) if model.joint_types[k] == 'revolute' else ('linear', 1.0)
        value = {each.GetName(): each.Get() for each in prim.GetAuthoredAttributes()}
        physx, drive = f'physxJointAxis:{axis}', f'drive:{axis}:physics'
        for name, number in {
            f'{physx}:armature': body.rotor_inertia[k],
            f'{physx}:staticFrictionEffort': body.friction[k],
            f'{physx}:dynamicFrictionEffort': body.friction[k],
            f'{physx}:viscousFrictionCoefficient': body.damping[k] / unit,
            f'{physx}:maxJointVelocity': model.limits.velocity[k] * unit,
            f'{drive}:stiffness': servo.stiffness[k] / unit,
            f'{drive}:damping': servo.damping[k] / unit,
            f'{drive}:maxForce': model.limits.effort[k],
            'physics:lowerLimit': model.limits.lower[k] * unit,
            'physics:upperLimit': model.limits.upper[k] * unit,
        }.items():
            assert value[name] == pytest.approx(number, rel=1e-6), name


SDF_READER = r"""
#include <iomanip>
#include <iostream>
#include <sdf/sdf.hh>
#if SDF_MAJOR_VERSION < 13
namespace gz = ignition;
#endif
int main(int, char **path)
{
  sdf::Root root;
  for (const auto & error : root.Load(path[1])) {
    std::cerr << error.Message() << std::endl;
    return 1;
  }
  const sdf::Model * model = root.Model();
  std::cout << std::setprecision(17);
  for (uint64_t k = 0; k < model->JointCount(); ++k) {
    const sdf::Joint * joint = model->JointByIndex(k);
    if (joint->Type() == sdf::JointType::FIXED) continue;
    const sdf::Link * link = model->LinkByName(joint->ChildLinkName());
    gz::math::Vector3d axis;
    gz::math::Pose3d place, seat;
    if (!joint->Axis(0)->ResolveXyz(axis, joint->Name()).empty()) return 2;
    if (!joint->SemanticPose().Resolve(place, joint->ParentLinkName()).empty()) return 3;
    if (!link->SemanticPose().Resolve(seat, joint->Name()).empty()) return 4;
    const auto body = link->Inertial();
    const gz::math::Matrix3d m = body.Moi(), r(place.Rot());
    std::cout << joint->Name();
    for (int i = 0; i < 3; ++i) std::cout << ' ' << place.Pos()[i];
    for (int i = 0; i < 9; ++i) std::cout << ' ' << r(i / 3, i % 3);
    for (int i = 0; i < 3; ++i) std::cout << ' ' << axis[i];
    for (int i = 0; i < 3; ++i) std::cout << ' ' << seat.Pos()[i] << ' ' << seat.Rot().Euler()[i];
    std::cout << ' ' << body.MassMatrix().Mass();
    for (int i = 0; i < 3; ++i) std::cout << ' ' << body.Pose().Pos()[i];
    for (int i = 0; i < 9; ++i) std::cout << ' ' << m(i / 3, i % 3);
    std::cout << ' ' << joint->Axis(0)->Damping() << ' ' << joint->Axis(0)->Friction() << std::endl;
  }
}
"""


def sdformat_flags() -> list[str]:
    if shutil.which('pkg-config') is None or shutil.which('g++') is None:
        pytest.skip('needs g++ and pkg-config')
    for name in ('sdformat12', 'sdformat13', 'sdformat14', 'sdformat15'):
        known = subprocess.run(['pkg-config', '--cflags', '--libs', name], capture_output=True, text=True, check=False)
        if known.returncode == 0:
            return known.stdout.split()
    pytest.skip('needs libsdformat-dev')


def test_sdformat_reads_the_result(tmp_path: Path) -> None:
    flags = sdformat_flags()
    # Names that a URDF may have and an SDF may not: a link called world, a link or a frame called as a joint is.
    text = arm('ur10e').source.replace('"base_link"', '"world"').replace('"forearm_link"', '"elbow_joint"')
    model = RobotModel.from_urdf(text.replace('"tool0"', '"wrist_3_joint"'))
    assert model.base_name == 'world'
    result = found(model)
    paths, said = export(model, result, 'sdf', tmp_path)
    (tmp_path / 'read.cpp').write_text(SDF_READER, encoding='ascii')
    program = tmp_path / 'read'
    subprocess.run(['g++', '-std=c++17', '-O0', tmp_path / 'read.cpp', '-o', program, *flags], check=True)
    listed = subprocess.run([program, paths[0]], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    assert [row[0] for row in rows] == list(model.joint_names)
    numbers = np.array([[float(x) for x in row[1:]] for row in rows])
    assert np.abs(numbers[:, 15:21]).max() < 1e-12  # links stand in their joints' frames
    placements = np.tile(np.eye(4), (model.n, 1, 1))
    placements[:, :3, 3], placements[:, :3, :3] = numbers[:, :3], numbers[:, 3:12].reshape(-1, 3, 3)
    mass, com, tensor = numbers[:, 21], numbers[:, 22:25], numbers[:, 25:34].reshape(-1, 3, 3)
    shift = np.einsum('ki,ki->k', com, com)[:, None, None] * np.eye(3) - com[:, :, None] * com[:, None, :]
    about_origin = tensor + mass[:, None, None] * shift
    six = about_origin[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    read = RobotModel(
        name='read',
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        placements=placements,
        axes=numbers[:, 12:15],
        inertial=np.concatenate([six, mass[:, None] * com, mass[:, None]], axis=1),
        gravity=model.gravity,
    )
    q, dq, ddq = states(model.n)
    assert_equal(
        inverse_dynamics(read, q, dq, ddq),
        inverse_dynamics(identified_arm(model, result), q, dq, ddq, rotor_inertia=False),
    )
    np.testing.assert_allclose(numbers[:, 34:], result.plain_friction[:, ::-1])
    assert 'rotor inertia' in said


def test_names_of_an_sdf_are_unique_and_not_reserved(tmp_path: Path) -> None:
    source = arm('ur10e').source.replace('"base_link"', '"world"').replace('"forearm_link"', '"elbow_joint"')
    model = RobotModel.from_urdf(source.replace('"tool0"', '"__tool__"'))
    root = ElementTree.parse(export(model, found(model), 'sdf', tmp_path)[0][0]).getroot().find('model')
    names = [each.get('name') for each in root if each.tag in ('link', 'joint', 'frame')]
    assert len(set(names)) == len(names)
    assert not {'world', '__tool__'} & set(names)
    links = {each.get('name') for each in root.findall('link')}
    ends = [joint.findtext(end) for joint in root.findall('joint') for end in ('parent', 'child')]
    assert set(ends) == links | {'world'}
    assert {frame.get('attached_to') for frame in root.findall('frame')} <= links


def test_an_sdf_keeps_the_shapes_of_its_urdf(tmp_path: Path) -> None:
    model = arm('ur10e')
    text = export(model, found(model), 'sdf', tmp_path)[0][0].read_text(encoding='utf-8')
    urdf = ElementTree.fromstring(model.source)
    sdf = ElementTree.fromstring(text)
    for kind in ('visual', 'collision'):
        assert len(list(sdf.iter(kind))) == len(list(urdf.iter(kind))) > 5
    assert {uri.text for uri in sdf.iter('uri')} == {mesh.get('filename') for mesh in urdf.iter('mesh')}


def test_a_result_that_is_not_usable_is_exported_by_force_only(tmp_path: Path) -> None:
    model = arm('ur10e')
    bad = replace(found(model), usable=False, reason='joint elbow: reversed')
    with pytest.raises(IdentificationError, match='not usable: joint elbow: reversed; --force exports it'):
        export(model, bad, 'urdf', tmp_path / 'out')
    assert not (tmp_path / 'out').exists()
    assert export(model, bad, 'urdf', tmp_path / 'out', force=True)[0][0].is_file()


@pytest.mark.slow
def test_the_cpp_header_alone_gives_the_torque(tmp_path: Path) -> None:
    if shutil.which('g++') is None:
        pytest.skip('needs g++')
    model = arm('ur10e')
    result = found(model)
    export(model, result, 'cpp', tmp_path)
    samples = [x[-1:] for x in states(6)]
    numbers = {
        name: ', '.join(repr(float(x)) for x in row[0]) for name, row in zip(('q', 'dq', 'ddq'), samples, strict=True)
    }
    lines = ['#include <cstdio>', '#include "inverse_dynamics.hpp"', 'using namespace ur10e_dynamics;', 'int other();']
    lines += ['int main() {', 'double tau[JOINTS];']
    lines += [f'const double {name}[JOINTS] = {{{row}}};' for name, row in numbers.items()]
    lines += ['inverse_dynamics(q, dq, ddq, default_coefficients, tau);']
    lines += ['for (double value : tau) std::printf("%.17g\\n", value);', 'return other() - JOINTS; }']
    (tmp_path / 'main.cpp').write_text('\n'.join(lines) + '\n', encoding='ascii')
    other = '#include "inverse_dynamics.hpp"\nint other();\nint other() { return ur10e_dynamics::JOINTS; }\n'
    (tmp_path / 'other.cpp').write_text(other, encoding='ascii')  # included twice, linked once
    flags = ['-std=c++11', '-pedantic', '-Wall', '-Wextra', '-Werror', '-O1']
    subprocess.run(['g++', *flags, 'main.cpp', 'other.cpp', '-o', 'main'], cwd=tmp_path, check=True)
    printed = subprocess.run(['./main'], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    expected = TorquePredictor(model, result).torque(*samples)[0]
    got = [float(x) for x in printed.split()]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_c_code_is_called_from_cpp(tmp_path: Path) -> None:
    if shutil.which('g++') is None or shutil.which('gcc') is None:
        pytest.skip('needs gcc and g++')
    model = arm('ur10e')
    result = found(model)
    export(model, result, 'c', tmp_path)
    samples = [x[-1:] for x in states(6)]
    lines = ['#include <cstdio>', '#include "inverse_dynamics.h"', 'int main() {', 'double tau[JOINTS];']
    for name, row in zip(('q', 'dq', 'ddq'), samples, strict=True):
        lines.append(f'const double {name}[JOINTS] = {{{", ".join(repr(float(x)) for x in row[0])}}};')
    lines += ['inverse_dynamics(q, dq, ddq, default_coefficients, tau);']
    lines += ['for (double value : tau) std::printf("%.17g\\n", value); }']
    (tmp_path / 'main.cpp').write_text('\n'.join(lines) + '\n', encoding='ascii')
    subprocess.run(['gcc', '-std=c99', '-c', 'inverse_dynamics.c', '-o', 'c.o'], cwd=tmp_path, check=True)
    subprocess.run(['g++', '-std=c++17', 'main.cpp', 'c.o', '-o', 'main'], cwd=tmp_path, check=True)
    printed = subprocess.run(['./main'], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    expected = TorquePredictor(model, result).torque(*samples)[0]
    got = [float(x) for x in printed.split()]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow
def test_the_command_writes_every_format_and_says_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = RobotModel.from_urdf(UR10E)
    result = found(model)
    (tmp_path / 'r').mkdir()
    result.save(tmp_path / 'r' / 'result.yaml')
    assert main(['export', str(tmp_path / 'r'), '--to', 'c']) == 2
    assert 'no calibrated.urdf beside result.yaml; give the arm by --robot' in capsys.readouterr().err
    export(model, result, 'urdf', tmp_path / 'r')
    for name in FORMATS:
        out = tmp_path / name
        assert main(['export', str(tmp_path / 'r'), '--to', name, '--out', str(out)]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f'{name}: the ')
        assert all(Path(line.removeprefix('written: ')).is_file() for line in said.splitlines()[1:])
    program = 'import inverse_dynamics as d; print(len(d.PARAMETERS))'
    module = subprocess.run([sys.executable, '-c', program], cwd=tmp_path / 'python', capture_output=True, text=True)
    assert int(module.stdout) >= len(base_parameters(model, rotor_inertia=True).names) + 6 * len(result.friction_names)


def test_an_unknown_format_and_coupled_joints_are_refused(tmp_path: Path) -> None:
    model = arm('ur10e')
    result = found(model)
    with refused(ModelError, name='stl', expected=FORMATS):
        export(model, result, 'stl', tmp_path)
    with pytest.raises(ModelError, match='belongs to the format mjcf'):
        export(model, result, 'sdf', tmp_path, mjcf='x.xml')
    coupling = np.eye(6)
    coupling[5, 4] = 0.5
    with pytest.raises(ModelError, match='joints of this arm are coupled'):
        identified_arm(model.with_inertial(model.inertial, coupling=coupling), result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('to', FORMATS)
def test_the_result_of_another_arm_is_refused(to: str, tmp_path: Path) -> None:
    with pytest.raises(IdentificationError, match='the result is for the joints'):
        export(arm('panda'), found(arm('ur10e')), to, tmp_path)
    assert not list(tmp_path.iterdir())
