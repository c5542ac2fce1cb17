# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Designs: they keep every limit between all samples, start as asked, and excite well."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import yaml
from excitation_helpers import UR10E, limits, planar_arm, random_arm, ur10e
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robotid_ros.dynamics import base_parameters
from robotid_ros.errors import DataError, ExcitationError
from robotid_ros.excitation import (
    ExcitationConfig,
    FourierTrajectory,
    load_excitation,
    optimize_excitation,
    optimizer,
    save_excitation,
)
from robotid_ros.excitation.constraints import scale_into_joint_limits
from robotid_ros.excitation.criteria import information_matrix, measure_excitation
from robotid_ros.excitation.motion import observation_of

QUICK = ExcitationConfig(period=8.0, harmonics=4, starts=2, iterations=40)


@pytest.fixture(scope='module')
def ur10e_design():
    return optimize_excitation(ur10e(), ExcitationConfig(period=16.0, starts=2, iterations=150))


def test_all_evaluations_are_counted(monkeypatch) -> None:
    """Of every round of every start and hop, by a count of our own, up to where the best is finished."""
    counted, lagrangian, finish = [], optimizer.ExcitationProblem.lagrangian, optimizer.finish
    calls = 0

    def counting(*arguments):
        nonlocal calls
        calls += 1
        return lagrangian(*arguments)

    def finishing(*arguments):
        counted.append(calls)
        return finish(*arguments)

    monkeypatch.setattr(optimizer.ExcitationProblem, 'lagrangian', counting)
    monkeypatch.setattr(optimizer, 'finish', finishing)
    design = optimize_excitation(planar_arm(2, limits=limits(2)), replace(QUICK, jobs=1))
    assert [design.evaluations] == counted


def observation_condition(model, trajectory):
    """Condition numbers of the stacked regressor of all parameters, by numpy's SVD."""
    base = base_parameters(model, rotor_inertia=True, viscous=True, coulomb=True, offset=True)
    stacked = base.regressor(*trajectory.evaluate(trajectory.sample_times(50.0))).reshape(-1, len(base.independent))
    return np.linalg.cond(stacked), np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0))


def assert_keeps_joint_limits(trajectory, bounds, rate=10_000.0):
    t = trajectory.sample_times(rate)
    position, velocity, acceleration = trajectory.evaluate(t)
    assert (position >= bounds.lower).all()
    assert (position <= bounds.upper).all()
    assert (np.abs(velocity) <= bounds.velocity).all()
    assert (np.abs(acceleration) <= bounds.acceleration).all()
    assert (np.abs(trajectory.jerk(t)) <= bounds.jerk).all()


def planar_torque(q, dq, ddq):
    """Torque of the planar arm by d'Alembert, link by link: every link's mass lies 0.2 m along it."""
    angle, rate, change = (np.cumsum(part, axis=1) for part in (q, dq, ddq))
    along = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    accelerate = across * change[..., None] - along * rate[..., None] ** 2
    joints = np.cumsum(0.4 * along, axis=1) - 0.4 * along
    joint_acceleration = np.cumsum(0.4 * accelerate, axis=1) - 0.4 * accelerate
    centre, force = joints + 0.2 * along, 3.0 * (joint_acceleration + 0.2 * accelerate + [0.0, 9.81])
    tau = np.zeros_like(q)
    for j in range(q.shape[1]):
        arm = centre[:, j:] - joints[:, j : j + 1]
        moment = arm[..., 0] * force[:, j:, 1] - arm[..., 1] * force[:, j:, 0]
        tau[:, j] = (moment + 0.05 * change[:, j:]).sum(axis=1)
    return tau + 0.2 * dq + 0.5 * np.sign(dq)


@pytest.mark.slow
def test_ur10e_reaches_the_condition_number_asked_for(ur10e_design):
    si, scaled = observation_condition(ur10e(), ur10e_design.trajectory)
    assert (ur10e_design.base_parameters, ur10e_design.friction_parameters) == (58, 18)
    assert si < 36.0
    assert scaled < 7.5
    assert ur10e_design.excitation.condition == pytest.approx(si, rel=0.01)
    assert ur10e_design.excitation.condition_scaled == pytest.approx(scaled, rel=0.01)


def test_ur10e_keeps_every_limit_on_a_10_khz_grid(ur10e_design):
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model, trajectory = ur10e(), ur10e_design.trajectory
    assert_keeps_joint_limits(trajectory, model.limits)
    reference = pinocchio.buildModelFromUrdf(str(UR10E))
    data = reference.createData()
    motion = trajectory.evaluate(trajectory.sample_times(500.0))
    tau = np.array([pinocchio.rnea(reference, data, *rows) for rows in zip(*motion, strict=True)])
    tau += model.damping * motion[1] + model.friction * np.sign(motion[1]) + model.rotor_inertia * motion[2]
    assert (np.abs(tau) <= model.limits.effort).all()


def test_starts_at_rest_to_1e_9():
    model = planar_arm(3, limits=limits(3, 2.0, 2.0, 8.0))
    trajectory = optimize_excitation(model, replace(QUICK, start_at_rest=True)).trajectory
    for t in (0.0, trajectory.period):
        _, velocity, acceleration = trajectory.evaluate([t])
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(acceleration, 0.0, atol=1e-9)


def test_says_which_limits_are_active(ur10e_design):
    text = ur10e_design.summary()
    assert ur10e_design.active
    for peak in ur10e_design.active:
        assert peak.bound.label in text
        assert -0.01 < peak.excess <= 0.0
    assert 'self-collision was not checked' in text


def test_given_start_position_is_kept_to_1e_9():
    model = planar_arm(3, limits=limits(3, 2.0, 2.0, 8.0))
    start = (0.3, -0.5, 1.0)
    trajectory = optimize_excitation(model, replace(QUICK, start_position=start, start_at_rest=True)).trajectory
    for t in (0.0, trajectory.period):
        position, velocity, acceleration = trajectory.evaluate([t])
        np.testing.assert_allclose(position[0], start, atol=1e-9)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
        np.testing.assert_allclose(acceleration, 0.0, atol=1e-9)
    assert_keeps_joint_limits(trajectory, model.limits)


def test_periods_join_in_motion_by_default():
    model = planar_arm(3, limits=limits(3, 2.0, 2.0, 8.0))
    moving = optimize_excitation(model, replace(QUICK, iterations=120))
    assert np.abs(moving.trajectory.velocity([0.0])).max() > 0.01
    assert_keeps_joint_limits(moving.trajectory, model.limits)


@pytest.mark.slow
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3),
    geometry=st.integers(0, 1),
    harmonics=st.integers(2, 6),
    fixed=st.booleans(),
)
def test_random_arms_with_random_limits_never_break_them(seed, n, geometry, harmonics, fixed):
    rng = np.random.default_rng(seed)
    model = random_arm(geometry, n, rng)
    bounds = model.limits
    start = tuple(rng.uniform(bounds.lower + 0.05, bounds.upper - 0.05)) if fixed else ()
    config = ExcitationConfig(
        period=float(rng.uniform(3.0, 20.0)),
        harmonics=max(harmonics, 3 if fixed else 2),
        starts=1,
        iterations=10,
        seed=seed,
        start_position=start,
        rotor_inertia=False,
        offset=False,
    )
    design = optimize_excitation(model, config)
    assert_keeps_joint_limits(design.trajectory, bounds)
    assert all(peak.excess <= 0.0 for peak in design.peaks)


@pytest.mark.slow
def test_torque_and_workspace_limits_hold_on_a_dense_grid():
    model = planar_arm(3, limits=limits(3, 2.5, 3.0, 12.0, effort=[31.0, 14.0, 4.3]))
    config = replace(
        QUICK, iterations=120, workspace_frames=('tip', 'link3'), workspace_upper=(9.0, 9.0, 0.5), noise=(1.0, 0.5, 0.2)
    )
    design = optimize_excitation(model, config)
    t = design.trajectory.sample_times(2000.0)
    q, dq, ddq = design.trajectory.evaluate(t)
    # the arm moves in the plane of x and z: heights add up link by link
    heights = np.cumsum(0.4 * np.sin(np.cumsum(q, axis=1)), axis=1)
    assert heights[:, 1:].max() <= 0.5
    assert (np.abs(planar_torque(q, dq, ddq)) <= model.limits.effort).all()
    assert max(peak.excess for peak in design.peaks if peak.bound.quantity == 'torque') > -0.05


@pytest.mark.slow
def test_clearance_keeps_the_links_apart():
    model = ur10e()
    config = ExcitationConfig(
        period=6.0, starts=1, iterations=60, link_radius=0.05, ground=True, ground_height=-0.1, clearance=0.02
    )
    design = optimize_excitation(model, config)
    assert {'clearance', 'z'} <= {peak.bound.quantity for peak in design.peaks}
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    reference = pinocchio.buildModelFromUrdf(str(UR10E))
    data = reference.createData()
    for q in design.trajectory.position(design.trajectory.sample_times(100.0)):
        pinocchio.forwardKinematics(reference, data, q)
        for joint in range(2, 7):  # every joint but the first stands higher than ground, clearance and radius
            assert data.oMi[joint].translation[2] >= -0.1 + 0.02 + 0.05 - 1e-9


@pytest.mark.slow
def test_equal_seeds_give_equal_results_in_any_number_of_processes():
    model = planar_arm(2, limits=limits(2))
    one = optimize_excitation(model, replace(QUICK, starts=3))
    two = optimize_excitation(model, replace(QUICK, starts=3, jobs=2))
    other = optimize_excitation(model, replace(QUICK, starts=3, seed=1))
    np.testing.assert_allclose(one.trajectory.coefficients, two.trajectory.coefficients, rtol=0, atol=1e-12)
    assert np.abs(one.trajectory.coefficients - other.trajectory.coefficients).max() > 1e-3


@cache
def random_motions():
    """Return what two hundred random motions of the planar arm inside its limits tell."""
    model, rng = planar_arm(3, limits=limits(3)), np.random.default_rng(0)
    observation = observation_of(model, QUICK)
    others = []
    for _ in range(200):
        raw = FourierTrajectory(
            a=rng.standard_normal((3, 4)), b=rng.standard_normal((3, 4)), offset=np.zeros(3), base_frequency=0.125
        )
        guess = scale_into_joint_limits(raw, model.limits)
        rows = observation.base.regressor(*guess.evaluate(guess.sample_times(1000.0 / guess.period)))
        others.append(measure_excitation(information_matrix(rows, observation.noise)))
    return others


@pytest.mark.slow
@pytest.mark.parametrize('criterion', ['d-optimal', 'a-optimal', 'e-optimal', 'condition', 'condition-scaled'])
def test_each_criterion_is_better_than_a_random_motion_inside_the_same_limits(criterion):
    model = planar_arm(3, limits=limits(3))
    best = optimize_excitation(model, replace(QUICK, criterion=criterion, iterations=100))
    assert_keeps_joint_limits(best.trajectory, model.limits)
    assert best.excitation.value(criterion) < min(other.value(criterion) for other in random_motions())


@pytest.mark.slow
def test_hops_from_the_last_start_lower_the_condition_number(monkeypatch):
    model = planar_arm(3, limits=limits(3))
    config = replace(QUICK, starts=1, criterion='condition', iterations=100)
    found = []
    for hops in (0, 1, 4):
        monkeypatch.setattr(optimizer, '_HOPS', hops)
        found.append(optimize_excitation(model, replace(config, starts=8)).excitation.condition)
    none, one, four = found
    assert one <= 1.01 * none  # settling inside the limits costs a little
    assert four <= 1.01 * one
    assert 0.5 < four / none < 0.99


@pytest.mark.slow
def test_interruption_returns_the_best_so_far():
    model = planar_arm(3, limits=limits(3))
    calls = []

    def interrupt(part, _what):
        calls.append(part)
        if 0.6 < part < 1.0:
            raise KeyboardInterrupt

    design = optimize_excitation(model, replace(QUICK, starts=4), progress=interrupt)
    assert design.interrupted
    assert 'interrupted' in design.summary()
    assert_keeps_joint_limits(design.trajectory, model.limits)
    at_once = optimize_excitation(model, QUICK, cancelled=lambda: True)
    assert at_once.interrupted
    assert_keeps_joint_limits(at_once.trajectory, model.limits)


def test_progress_grows_to_one():
    parts = []
    optimize_excitation(planar_arm(2, limits=limits(2)), QUICK, progress=lambda part, _: parts.append(part))
    assert parts == sorted(parts)
    assert parts[-1] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ('changes', 'config', 'message'),
    [
        ({'lower': [0.5, -1.0], 'upper': [0.5, 1.0]}, {}, "joint 'joint1' leave no room to move"),
        (
            {},
            {'start_position': (0.0, 5.0)},
            "start position of joint 'joint2' is 5 rad, outside its limits -2 to 2",
        ),
        ({}, {'start_position': (0.0,)}, 'start_position: expected shape'),
        (
            {'lower': -np.inf, 'upper': np.inf, 'velocity': np.inf, 'acceleration': np.inf},
            {},
            "joint 'joint1' has no finite position range, velocity limit or acceleration limit",
        ),
        (
            {'effort': [5.0, 100.0], 'lower': -0.5, 'upper': 0.5},
            {},
            "torque of joint 'joint1' is .* N m at t = .* s, the largest allowed is 5 N m",
        ),
        ({'effort': [100.0, 0.4], 'lower': 1.5, 'upper': 1.6}, {}, "torque of joint 'joint2' is .* N m at t = .* s"),
        (
            {},
            {'workspace_frames': ('tip',), 'workspace_lower': (2.0, -1.0, -1.0)},
            "x of frame 'tip' is .* allowed is 2 m",
        ),
        ({}, {'workspace_frames': ('hand',), 'workspace_lower': (0.0, 0.0, 0.0)}, "frame 'hand' is not one"),
        ({}, {'geometry': 'nowhere.yaml'}, "geometry 'nowhere.yaml' does not exist"),
        ({}, {'noise': (1.0, 2.0, 3.0)}, 'noise: expected shape'),
    ],
)
def test_limits_that_cannot_be_kept_are_named(changes, config, message):
    n = 2
    values = {name: np.broadcast_to(np.asarray(value, float), (n,)) for name, value in changes.items()}
    model = planar_arm(n, limits=limits(n).overridden(**values))
    with pytest.raises(ExcitationError, match=message):
        optimize_excitation(model, replace(QUICK, starts=1, iterations=20, **config))


def test_acceleration_limit_fills_only_the_gaps():
    bounds = limits(2, acceleration=[1.0, np.inf])
    design = optimize_excitation(planar_arm(2, limits=bounds), replace(QUICK, acceleration_limit=3.0))
    np.testing.assert_allclose(design.limits.acceleration, [1.0, 3.0])
    assert_keeps_joint_limits(design.trajectory, design.limits)


def test_scalings_leave_a_margin():
    model = planar_arm(2, limits=limits(2))
    config = replace(QUICK, position_scaling=0.5, velocity_scaling=0.4, acceleration_scaling=0.3)
    trajectory = optimize_excitation(model, config).trajectory
    assert_keeps_joint_limits(trajectory, limits(2, 1.0, 0.8, 1.8))


@pytest.mark.slow
def test_files_repeat_a_design_to_the_last_digit(tmp_path, ur10e_design):
    file = tmp_path / 'excitation.yaml'
    save_excitation(ur10e_design, file)
    loaded = load_excitation(file)
    assert (loaded.trajectory.coefficients == ur10e_design.trajectory.coefficients).all()
    assert loaded.config == ur10e_design.config
    assert loaded.excitation == ur10e_design.excitation
    assert loaded.active == ur10e_design.active
    assert (loaded.limits.velocity == ur10e_design.limits.velocity).all()
    model = planar_arm(2, limits=limits(2))
    small = optimize_excitation(model, QUICK)
    save_excitation(small, file)
    again = optimize_excitation(model, load_excitation(file).config)
    np.testing.assert_allclose(again.trajectory.coefficients, small.trajectory.coefficients, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda c: c.pop('trajectory'), 'missing: trajectory'),
        (lambda c: c.update(format='other'), "expected an excitation with 'format: robotid excitation 1'"),
        (lambda c: c.update(joints=['a']), '1 joints, but a trajectory of 6'),
        (lambda c: c['settings'].update(period='long'), 'period: expected a number'),
        (lambda c: c['criteria'].pop('condition'), 'cannot be read'),
        (lambda c: c['limits'].update(velocity=[-1.0] * 6), 'expected a positive number'),
        (lambda c: c['trajectory'].update(a='nothing'), 'a: expected numbers'),
        (lambda c: c.update(period=9.0), 'period is 9.0, but the trajectory has'),
        (lambda c: c.update(harmonics=2), 'harmonics is 2, but the trajectory has'),
        (lambda c: c['trajectory'].update(a=(3.0 * np.array(c['trajectory']['a'])).tolist()), 'own limit is'),
        (lambda c: c['limits'].update(velocity=[0.1] * 6), "velocity of joint 'shoulder_pan_joint' is .*limit is 0.1;"),
    ],
)
def test_damaged_files_are_refused(tmp_path, ur10e_design, change, message):
    file = tmp_path / 'excitation.yaml'
    save_excitation(ur10e_design, file)
    content = yaml.safe_load(file.read_text())
    change(content)
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(ExcitationError, match=message):
        load_excitation(file)


@pytest.mark.parametrize('text', ['[', '- 1', '', '\x00'])
def test_files_that_are_no_excitation_are_refused(tmp_path, text):
    file = tmp_path / 'excitation.yaml'
    file.write_text(text)
    with pytest.raises(ExcitationError, match=r'excitation\.yaml'):
        load_excitation(file)
    with pytest.raises(ExcitationError, match='does not exist'):
        load_excitation(tmp_path / 'absent.yaml')


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, ur10e_design):
    with pytest.raises(DataError, match='cannot write'):
        save_excitation(ur10e_design, tmp_path / 'absent' / 'excitation.yaml')
    assert list(tmp_path.iterdir()) == []
