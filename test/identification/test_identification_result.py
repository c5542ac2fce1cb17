# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""result.yaml, the calibrated URDF, metrics, payload and what controllers use."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from identification_helpers import TWO_LINKS, UR10E, dataset, fourier_motion, pinocchio_torque

from robotid_ros.commands.terminal import parameter_table
from robotid_ros.dynamics import base_parameters, inverse_dynamics
from robotid_ros.errors import IdentificationError, ModelWarning
from robotid_ros.identification import (
    IdentificationResult,
    Metrics,
    TorquePredictor,
    calibrated_urdf,
    identify,
    torque_metrics,
    validate,
)
from robotid_ros.identification.model_choice import with_ripple
from robotid_ros.identification.physical import believable_prior, physical_parameters
from robotid_ros.identification.prior import standard_prior
from robotid_ros.identification.setup import SetUp
from robotid_ros.loads.contact import TorqueMonitor
from robotid_ros.loads.payload import drive_gains, identify_payload
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters, pseudo_inertia

ARM = RobotModel.from_urdf(TWO_LINKS, tip='tool')


def data_of(model: RobotModel, seed: int, noise: float = 0.02, size: float = 0.6, moved: RobotModel | None = None):
    rng = np.random.default_rng(seed)
    motion = fourier_motion(model.n, rng, size=size)
    torque = pinocchio_torque(moved or model, *motion[1:]) + 2.0 * np.sign(motion[2]) + 1.5 * motion[2]
    return dataset(model, motion, torque + rng.normal(0.0, noise, torque.shape))


@pytest.fixture(scope='module')
def result() -> IdentificationResult:
    return identify(data_of(ARM, 1), ARM, friction='coulomb_viscous+offset', validation=data_of(ARM, 2))


def test_yaml_round_trip_keeps_every_number(result: IdentificationResult, tmp_path: Path) -> None:
    result.save(tmp_path / 'result.yaml')
    again = IdentificationResult.load(tmp_path / 'result.yaml')
    assert again.to_yaml() == result.to_yaml()
    for name in ('base_values', 'base_std', 'inertial', 'rotor_inertia', 'friction_values', 'friction_std', 'gravity'):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    data = result.to_dict()
    wanted = 'robot joints gravity base_parameters standard_parameters friction condition_number usable reason metrics'
    assert set(wanted.split()) < set(data)
    assert set(data['metrics']) == {'training', 'validation'}
    figures = {'rmse', 'relative_error', 'relative_error_total', 'match', 'samples', 'left_of_variation'}
    assert set(data['metrics']['training']) == figures
    del data['metrics']['training']['left_of_variation']  # as in a file of before there was such a figure
    assert Metrics.from_dict(data['metrics']['training']).to_dict() == data['metrics']['training']
    assert set(data['base_parameters'][0]) >= {'name', 'value', 'std', 'relative_std', 'unit'}
    assert data['condition_number']['scaled'] >= 1.0


def test_base_parameters_can_be_computed_from_the_combinations_that_the_file_states(
    result: IdentificationResult,
) -> None:
    """By the file alone: the true standard parameters give what was identified, within its deviations."""
    names = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'mx', 'my', 'mz', 'm')
    truth = {f'{name}{k + 1}': ARM.inertial[k, i] for k in range(2) for i, name in enumerate(names)}
    truth |= {f'Ia{k + 1}': ARM.rotor_inertia[k] for k in range(2)}
    entries = yaml.safe_load(result.to_yaml())['base_parameters']
    assert len(entries) > 3
    assert any(len(entry['combination']) > 1 for entry in entries)
    for entry in entries:
        expected = sum(factor * truth[name] for name, factor in entry['combination'].items())
        assert abs(entry['value'] - expected) < 5.0 * entry['std'], entry
        assert entry['name'].startswith(next(iter(entry['combination'])))


def test_what_is_no_result_is_refused_with_one_line(tmp_path: Path) -> None:
    for text in ('[1, 2', 'robot: x', '- a', '42'):
        with pytest.raises(IdentificationError, match='not a result of an identification'):
            IdentificationResult.from_yaml(text)
    with pytest.raises(IdentificationError, match='does not exist'):
        IdentificationResult.load(tmp_path / 'absent.yaml')


def test_a_damaged_result_is_refused_with_one_line_and_its_name(result: IdentificationResult, tmp_path: Path) -> None:
    text = result.to_yaml()
    damaged = {
        text[: text.index('friction:')]: "the entry 'friction' is missing",
        text[: text.index('sha256:')].replace('value: ', 'value: x', 1): 'could not convert string to float',
        text[: text.index('sha256:')] + '\n  - [': 'not valid YAML',
    }
    for content, message in damaged.items():
        (tmp_path / 'result.yaml').write_text(content, encoding='utf-8')
        with pytest.raises(IdentificationError, match=message) as refusal:
            IdentificationResult.load(tmp_path / 'result.yaml')
        assert '\n' not in str(refusal.value)
        assert 'result.yaml: ' in str(refusal.value)


@pytest.mark.parametrize(
    ('entry', 'value'),
    [
        *product(['lag', 'delay', 'cutoff', 'torque_bandwidth'], [1e300, -1.0, float('nan'), float('inf')]),
        ('lag', 0.21),
        ('delay', 0.21),
    ],
)
def test_a_time_or_frequency_that_no_signal_has_is_refused(
    result: IdentificationResult, entry: str, value: float
) -> None:
    content = result.to_dict()
    (content['friction'] if entry == 'lag' else content)[entry] = value
    if value == 1e300 and entry in ('cutoff', 'torque_bandwidth'):  # no limit
        assert IdentificationResult.from_dict(content)
        return
    with pytest.raises(IdentificationError, match=f'{entry}: expected'):
        IdentificationResult.from_dict(content)


def test_a_result_that_was_altered_is_refused(result: IdentificationResult, tmp_path: Path) -> None:
    path = tmp_path / 'result.yaml'

    def altered(change: Callable[[dict[str, Any]], object], *, signed: bool) -> str:
        content = yaml.safe_load(result.to_yaml())
        change(content)
        if not signed:
            del content['sha256']
        path.write_text(yaml.safe_dump(content), encoding='utf-8')
        with pytest.raises(IdentificationError, match=r'result\.yaml: ') as refusal:
            IdentificationResult.load(path)
        return str(refusal.value)

    def light(content: dict[str, Any]) -> None:
        next(iter(content['standard_parameters'].values()))['m'] = -5.0

    assert 'sha256' in altered(light, signed=True)
    assert 'the mass is negative (-5 kg)' in altered(light, signed=False)
    assert 'sha256' in altered(lambda content: content['base_parameters'][0].update(value=1e6), signed=True)
    assert 'sha256' in altered(lambda content: content.update(usable=not result.usable), signed=True)
    no = "usable: expected true or false, got 'no'"  # the word in quotes is a text, and no text is false
    assert no in altered(lambda content: content.update(usable='no'), signed=False)
    joint = result.joint_names[0]
    assert no in altered(lambda content: content['joint_verdicts'][joint].update(usable='no'), signed=False)
    assert 'good: expected true or false' in altered(
        lambda content: content['good_for']['simulation'].update(good=1), signed=False
    )


@pytest.mark.parametrize('entry', ['gravity', 'position', 'zero', 'torque', 'drives'])
@pytest.mark.parametrize('value', [[0.0] * 4, [[1.0]], [float('nan')] * 3])
def test_a_set_up_of_another_arm_is_refused(result: IdentificationResult, entry: str, value: list[Any]) -> None:
    content = result.to_dict() | {'setup': SetUp.as_described(ARM).to_dict()}
    assert IdentificationResult.from_dict(content).setup is not None
    content['setup'][entry] = value
    with pytest.raises(IdentificationError, match=f'set-up: {entry}: expected'):
        IdentificationResult.from_dict(content)


def test_friction_of_another_version_is_refused(result: IdentificationResult) -> None:
    data = yaml.safe_load(result.to_yaml())
    del data['sha256']
    again = IdentificationResult.from_yaml(yaml.safe_dump(data))  # with its keys sorted
    np.testing.assert_array_equal(again.friction_values, result.friction_values)
    for joint in data['friction']['joints'].values():
        joint['level_5'] = joint[result.friction_names[0]]
    with pytest.raises(IdentificationError, match=r'the result holds .*level_5.*: identify again'):
        IdentificationResult.from_yaml(yaml.safe_dump(data))


def test_the_rotor_inertia_of_a_slide_is_a_mass() -> None:
    rows = [(0.0, 0.0, 0.0, 0.0), (0.0, 0.3, 0.0, 0.0), (0.0, 0.3, 0.0, 0.0)]
    body = np.array([0.02, 0.0, 0.0, 0.02, 0.0, 0.02, 0.1, 0.0, 0.0, 1.0])
    scara = RobotModel.from_mdh(rows, types=('revolute', 'revolute', 'prismatic'), inertial=np.tile(body, (3, 1)))
    motion = fourier_motion(3, np.random.default_rng(1))
    torque = inverse_dynamics(scara, *motion[1:]) + 0.5 * motion[3] + motion[2]  # units are all that is looked at
    found = identify(dataset(scara, motion, torque), scara, friction='coulomb_viscous')
    units = {name: unit for name, unit in zip(found.base_names, found.base_units, strict=True) if name.startswith('Ia')}
    assert units['Ia3'] == 'kg'
    assert set(units.values()) <= {'kg', 'kg*m^2'}


def test_a_failed_write_leaves_nothing(result: IdentificationResult, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='cannot write'):
        result.save(tmp_path / 'absent' / 'result.yaml')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize('source', [TWO_LINKS, UR10E.read_text()], ids=['two_links', 'ur10e'])
def test_calibrated_urdf_moves_as_the_result_in_pinocchio_and_mujoco(source: str) -> None:
    mujoco = pytest.importorskip('mujoco', reason='needs the sim extra')
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = RobotModel.from_urdf(source)
    found = identify(data_of(model, 3, size=0.9), model, friction='coulomb_viscous', estimator='wls')
    text = calibrated_urdf(model, found)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 20, model.n))
    expected = pinocchio_torque(model.with_inertial(found.inertial, rotor_inertia=np.zeros(model.n)), q, dq, ddq)

    arm = pinocchio.buildModelFromXML(text)
    data = arm.createData()
    order = [arm.joints[arm.getJointId(name)].idx_v for name in model.joint_names]
    assert arm.nv == model.n
    rows = [[row[np.argsort(order)] for row in rows] for rows in zip(q, dq, ddq, strict=True)]
    torque = np.array([pinocchio.rnea(arm, data, *row)[order] for row in rows])
    np.testing.assert_allclose(torque, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())

    # Only what is no inertia is taken away: shapes, whose mesh files are not here, and the joints' friction.
    plain = re.sub(r'<(visual|collision)>.*?</\1>', '', text, flags=re.DOTALL)
    scene = mujoco.MjModel.from_xml_string(plain)
    scene.opt.gravity[:] = model.gravity
    scene.dof_damping[:], scene.dof_frictionloss[:] = 0.0, 0.0
    state = mujoco.MjData(scene)
    for k in range(len(q)):
        state.qpos[:], state.qvel[:], state.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(scene, state)
        np.testing.assert_allclose(state.qfrc_inverse, expected[k], rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_calibrated_urdf_changes_inertial_and_dynamics_elements_only(result: IdentificationResult) -> None:
    def skeleton(text: str) -> str:
        text = re.sub(r'<inertial>.*?</inertial>', '<inertial/>', text, flags=re.DOTALL)
        text = re.sub(r'\s*<dynamics[^>]*/>', '', text)
        return re.sub(r'\s+', ' ', text)

    text = calibrated_urdf(ARM, result)
    assert skeleton(text) == skeleton(TWO_LINKS)
    again = RobotModel.from_urdf(text, tip='tool')
    np.testing.assert_allclose(again.inertial, result.inertial, atol=1e-12)
    np.testing.assert_allclose(again.friction, result.friction_values[:, 0])
    np.testing.assert_allclose(again.damping, result.friction_values[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize('name', ['daemi_heimann', 'stribeck', 'coulomb_viscous+load', 'coulomb_viscous+asymmetric'])
def test_a_urdf_gets_the_friction_that_its_two_numbers_can_tell_best(name: str) -> None:
    rng = np.random.default_rng(5)
    motion = fourier_motion(ARM.n, rng, size=0.9)
    speed = motion[2]
    friction = 2.0 * np.sign(speed) + 1.5 * speed + 4.0 * np.arctan(3.0 * speed)
    torque = pinocchio_torque(ARM, *motion[1:]) + friction
    data = dataset(ARM, motion, torque + rng.normal(0.0, 0.02, torque.shape))
    found = identify(data, ARM, friction=name, estimator='wls')
    text = calibrated_urdf(ARM, IdentificationResult.from_yaml(found.to_yaml()))
    dynamics = [re.search(rf'name="{joint}".*?<dynamics ([^>]*)/>', text, re.DOTALL)[1] for joint in ARM.joint_names]
    numbers = [dict(re.findall(r'(\w+)="([^"]*)"', entry)) for entry in dynamics]
    for j, entry in enumerate(numbers):
        written = float(entry['friction']) * np.sign(speed[:, j]) + float(entry['damping']) * speed[:, j]
        columns = np.stack([np.sign(speed[:, j]), speed[:, j]], axis=1)
        best = columns @ np.linalg.lstsq(columns, friction[:, j], rcond=None)[0]
        least = np.sqrt(np.mean((friction[:, j] - best) ** 2))
        assert np.sqrt(np.mean((friction[:, j] - written) ** 2)) < 1.2 * least + 0.1
        assert least < 0.15 * np.sqrt(np.mean(friction[:, j] ** 2))


def test_metrics_are_their_definitions() -> None:
    measured = np.array([[3.0, 0.0], [4.0, 0.0]])
    predicted = np.array([[3.0, 1.0], [3.0, 0.0]])
    metrics = torque_metrics(('a', 'b'), measured, predicted)
    np.testing.assert_allclose(metrics.rmse, [np.sqrt(0.5), np.sqrt(0.5)])
    np.testing.assert_allclose(metrics.relative_error, [20.0, 100.0])
    assert metrics.relative_error_total == pytest.approx(100.0 * np.sqrt(2.0) / 5.0)
    np.testing.assert_allclose(metrics.match, [80.0, 0.0])


def test_a_result_of_another_arm_is_refused(result: IdentificationResult) -> None:
    with pytest.raises(IdentificationError, match='the result is for the joints shoulder, elbow; the robot has'):
        validate(result, RobotModel.from_urdf(UR10E), data_of(ARM, 1))
    longer = RobotModel.from_urdf(TWO_LINKS.replace('<origin xyz="0.4 0 0"/>', '<origin xyz="0.5 0 0"/>'), tip='tool')
    with pytest.raises(IdentificationError, match='another arm'):
        TorquePredictor(longer, result)
    # 0.11985 rounds either way, by the last bit of how it was computed; another factor is another arm.
    rounded, other = (
        replace(result, base_names=tuple(name.replace('0.4*', f'{factor}*') for name in result.base_names))
        for factor in (0.4001, 0.41)
    )
    assert rounded.base_names != result.base_names
    TorquePredictor(ARM, rounded)
    with pytest.raises(IdentificationError, match='has no base parameter'):
        TorquePredictor(ARM, other)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(pi=arrays(float, (2, 10), elements=st.floats(-10.0, 10.0)), weight=st.floats(1e-3, 1e6))
def test_any_measured_parameters_become_those_of_real_bodies(pi: np.ndarray, weight: float) -> None:
    """Whatever impossible parameters the data ask for, the answer has positive definite pseudo-inertias."""
    matrix = weight * np.eye(20)
    found = physical_parameters(matrix, matrix @ pi.ravel(), float(weight * np.sum(pi**2)), np.eye(20), ARM)
    assert (np.linalg.eigvalsh(pseudo_inertia(found.inertial))[:, 0] > 0.0).all()


@settings(max_examples=40, deadline=None)
@given(inertial=arrays(float, (2, 10), elements=st.floats(-5.0, 5.0)))
@example(inertial=np.array([[3.0, *[1e-24] * 9], [1e-24] * 10]))
def test_any_description_makes_a_believable_prior(inertial: np.ndarray) -> None:
    assert (np.linalg.eigvalsh(pseudo_inertia(believable_prior(ARM.with_inertial(inertial))))[:, 0] > 0.0).all()


def test_links_of_unknown_mass_are_rods_from_joint_to_joint() -> None:
    """Each by the masses of many points on the way to the next joint, or to the tip."""
    arm = RobotModel.from_urdf(UR10E)
    body = inertial_parameters(3.0, np.array([0.0, 0.0, 0.02]), 0.05 * np.eye(3))
    mean, _ = standard_prior(arm.with_inertial(np.tile(body, (6, 1))), rotor_inertia=False)
    ends = [*arm.placements[1:, :3, 3], arm.tip[:3, 3]]
    for found, end in zip(mean.reshape(6, 10), ends, strict=True):
        points = (np.arange(1000) + 0.5)[:, None] / 1000 * end
        inertia = sum(0.003 * (point @ point * np.eye(3) - np.outer(point, point)) for point in points)
        expected = [*inertia[np.triu_indices(3)], *(0.003 * points.sum(axis=0)), 3.0]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def in_units(model: RobotModel, mass: float, time: float) -> RobotModel:
    """Return an arm as it is told in other units: its kilogram and its second are as large as given."""
    return replace(
        model,
        inertial=mass * model.inertial,
        rotor_inertia=mass * model.rotor_inertia,
        gravity=model.gravity / time**2,
        limits=model.limits.overridden(
            effort=model.limits.effort * mass / time**2, velocity=model.limits.velocity / time
        ),
        source=None,
    )


@cache
def identified_in_units(kilogram: float, second: float) -> IdentificationResult:
    with pytest.warns(ModelWarning, match='joints held at zero'):
        arm = RobotModel.from_urdf(UR10E, joints=RobotModel.from_urdf(UR10E).joint_names[:3])
    rng = np.random.default_rng(8)
    real = replace(arm, inertial=arm.inertial * rng.uniform(0.8, 1.2, (3, 1)))
    model, sets = in_units(arm, kilogram, second), []
    for seed in (1, 2):
        plain = data_of(arm, seed, 0.1, 0.9, real)
        signals = (second * plain.time, plain.q, plain.dq / second, plain.ddq / second**2)
        sets.append(dataset(model, signals, plain.tau * kilogram / second**2, rate=100.0 / second))
    return identify(sets[0], model, validation=sets[1])


@pytest.mark.slow
@pytest.mark.parametrize(('mass', 'time'), [(1e-6, 1.0), (1e6, 1.0), (1e-3, 0.1), (1.0, 30.0)])
def test_light_and_heavy_fast_and_slow_arms_are_identified_alike(mass: float, time: float) -> None:
    """No constant of the identification has a unit of mass or time: told in others, an arm has the same answer."""
    one, other = found = identified_in_units(1.0, 1.0), identified_in_units(mass, time)
    assert one.usable == other.usable is True
    errors = [each.metrics['validation'].relative_error_total for each in found]
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)
    assert [use.good for use in one.good_for] == [use.good for use in other.good_for]
    np.testing.assert_allclose(other.inertial[:, 9], mass * one.inertial[:, 9], rtol=1e-5)
    size = np.abs(one.inertial).max(axis=0)
    np.testing.assert_allclose(other.inertial / (mass * size), one.inertial / size, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_payload_is_weighed() -> None:
    arm = RobotModel.from_urdf(UR10E)
    payload = inertial_parameters(3.0, np.array([0.02, -0.03, 0.08]), np.diag([0.02, 0.025, 0.012]))
    inertial = np.array(arm.inertial)
    inertial[-1] += payload
    loaded = arm.with_inertial(inertial)
    empty = [data_of(arm, seed, 0.1, 0.9) for seed in (1, 2)]
    runs = [data_of(arm, seed, 0.1, 0.9, loaded) for seed in (3, 4)]
    alone = identify(empty, arm, friction='coulomb_viscous+offset', estimator='wls')
    found = identify_payload(runs, arm, alone)
    assert found.mass == pytest.approx(3.0, rel=0.02)
    np.testing.assert_allclose(found.centre_of_mass, [0.02, -0.03, 0.08], atol=0.005)
    assert (found.rmse_with < 1.1 * 0.1).all()
    assert found.rmse_without.max() > 1.0
    assert np.linalg.eigvalsh(pseudo_inertia(found.inertial))[0] > 0.0
    assert abs(found.free[9] - 3.0) < 4.0 * found.std[9]
    # An arm whose identification turned a reversed torque: it is turned in the loaded runs too.
    sign = np.where(np.arange(6) == 2, -1.0, 1.0)
    recorded = [replace(run, tau=run.tau * sign, tau_filtered=run.tau_filtered * sign) for run in runs]
    turned = replace(alone, setup=replace(SetUp.as_described(arm), torque=np.diag(sign)))
    np.testing.assert_allclose(identify_payload(recorded, arm, turned).free, found.free, rtol=1e-9)


def test_drive_gains_come_out_of_a_known_payload() -> None:
    arm = RobotModel.from_urdf(UR10E)
    centre, turning = np.array([0.1, 0.05, 0.1]), np.diag([0.3, 0.4, 0.2])  # a rod of half a metre
    inertial = np.array(arm.inertial)
    inertial[-1] += inertial_parameters(5.0, centre, turning)
    wrong = np.array([0.9, 1.1, 1.2, 0.8, 1.05, 0.95])  # what the assumed torque constants get wrong

    def seen(seed: int, moved: RobotModel):
        data = data_of(arm, seed, 0.05, 0.9, moved)
        return dataset(arm, (data.time, data.q, data.dq, data.ddq), data.tau / wrong)

    without, loaded = seen(1, arm), seen(2, arm.with_inertial(inertial))
    alone = identify(without, arm, friction='coulomb_viscous+offset', estimator='wls')
    weighed = inertial_parameters(5.0, centre, np.zeros((3, 3)))  # by a scale and a ruler
    gains, std = drive_gains(without, loaded, arm, weighed, alone)
    error = np.abs(gains - wrong)
    assert (error < 4.0 * std).all()
    assert (error[3:] < 0.01).all()


def test_monitor_shows_a_push_and_nothing_else(result: IdentificationResult) -> None:
    model_torque = TorquePredictor(ARM, result)
    time, q, dq, ddq = fourier_motion(2, np.random.default_rng(8), rate=500.0)
    torque = model_torque.torque(q, dq, ddq)
    push = np.where((time > 5.0)[:, None], [4.0, 0.0], 0.0)
    monitor = TorqueMonitor(model_torque, cutoff=15.0)
    seen = [monitor.update(*row) for row in zip(time, q, dq, torque + push, strict=True)]
    before = np.array([s.external for s, t in zip(seen, time, strict=True) if s is not None and t < 5.0])
    after = np.array([s.external for s, t in zip(seen, time, strict=True) if s is not None and t > 5.3])
    assert np.median(np.abs(before)) < 0.2
    np.testing.assert_allclose(np.median(after, axis=0), [4.0, 0.0], atol=0.3)


@pytest.mark.parametrize('estimator', ['ols', 'wls', 'irls', 'auto'])
def test_a_lift_is_held_with_its_weight_and_not_with_a_share_of_it(estimator: str) -> None:
    """An offset of a vertical slide cannot be told from its weight, nor its mass from the rotor's inertia."""
    body = inertial_parameters(4.0, np.array([0.1, 0.02, 0.03]), np.diag([0.05, 0.06, 0.04]))
    rows = [(0.0, 0.0, 0.0, 0.0), (0.0, 0.1, 0.0, 0.0), (np.pi / 2, 0.3, 0.0, 0.0)]
    kinds = ('prismatic', 'revolute', 'revolute')
    arm, described = (
        RobotModel.from_mdh(rows, types=kinds, inertial=np.tile(share * body, (3, 1)), gravity=(0.0, 0.0, -9.81))
        for share in (1.0, 0.8)
    )
    motion = fourier_motion(3, np.random.default_rng(0), seconds=20.0)
    _, q, dq, ddq = motion
    torque = inverse_dynamics(arm, q, dq, ddq) + np.array([4.0, 0.3, 0.2]) * ddq
    torque += np.array([5.0, 1.0, 0.6]) * np.sign(dq) + np.array([8.0, 1.0, 0.5]) * dq + np.array([-3.0, 0.0, 0.0])
    torque += np.array([0.3, 0.05, 0.05]) * np.random.default_rng(1).normal(size=torque.shape)
    result = identify(dataset(arm, motion, torque), described, friction='coulomb_viscous+offset', estimator=estimator)
    gravity = TorquePredictor(described, result).gravity_torque(np.zeros((1, 3)))
    assert gravity[0, 0] == pytest.approx(3 * 4.0 * 9.81 - 3.0, abs=0.3)
    assert result.good_for[0].name == 'gravity compensation'
    assert result.good_for[0].good


def test_gravity_and_friction_feed_forward_add_up(result: IdentificationResult) -> None:
    predictor = TorquePredictor(ARM, result)
    _, q, dq, ddq = fourier_motion(2, np.random.default_rng(9))
    rigid = predictor.rigid_torque(q, dq, ddq)
    np.testing.assert_allclose(rigid + predictor.friction_torque(dq, rigid, q), predictor.torque(q, dq, ddq))
    still = np.zeros_like(q)
    np.testing.assert_allclose(predictor.gravity_torque(q), predictor.rigid_torque(q, still, still))
    # closed form: both links hang from horizontal joints; m g c at full stretch
    stretched = predictor.gravity_torque(np.zeros((1, 2)))
    assert stretched[0, 1] == pytest.approx(-9.81 * (2.5 * 0.15 + 0.3 * 0.35), rel=0.01)


def test_the_table_of_parameters_leaves_out_the_ripple_of_joints_that_have_none(result: IdentificationResult) -> None:
    values = np.concatenate([result.friction_values, np.full((result.friction_values.shape[0], 2), 0.3)], axis=1)
    rippled = replace(
        result,
        friction=with_ripple(result.friction, np.array([0.0, 200.0]), 10.0),
        friction_values=values,
        friction_std=0.1 * np.abs(values),
    )
    table = parameter_table(rippled)
    assert table.count('ripple sin') == table.count('ripple sin elbow') == 1
    assert IdentificationResult.from_yaml(rippled.to_yaml()).friction_names == rippled.friction_names


def test_base_parameters_of_the_physical_ones_explain_the_torque(result: IdentificationResult) -> None:
    base = base_parameters(ARM, rotor_inertia=True)
    standard = np.concatenate([result.inertial.ravel(), result.rotor_inertia])
    _, q, dq, ddq = fourier_motion(2, np.random.default_rng(5))
    rigid = TorquePredictor(ARM, result).rigid_torque(q, dq, ddq)
    error = base.regressor(q, dq, ddq) @ (base.map @ standard) - rigid
    assert np.abs(error).max() < 0.02 * np.abs(rigid).max()
