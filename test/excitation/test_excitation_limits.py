# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Criteria, limits and their gradients, against numpy, Pinocchio, coal and high-order differences."""

import numpy as np
import pytest
from excitation_helpers import UR10E, limits, planar_arm, random_arm, ur10e
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.constraints import JointRanges, TorqueLimits
from robotid_ros.excitation.criteria import CRITERIA, criterion_gradient, information_matrix, measure_excitation
from robotid_ros.excitation.motion import Motion, MotionGradient, observation_of
from robotid_ros.excitation.optimizer import ExcitationProblem, free_directions
from robotid_ros.excitation.preparation import design_limits
from robotid_ros.excitation.workspace import (
    Capsule,
    Clearance,
    Geometry,
    closest_points,
    find_frame,
    ground_clearance,
    load_geometry,
    skeleton,
    workspace_box,
    workspace_constraints,
)


def derivative(function, h=1e-3):
    """Fourth-order central difference at zero."""
    return (8.0 * (function(h) - function(-h)) - (function(2.0 * h) - function(-2.0 * h))) / (12.0 * h)


def random_information(seed, b=7):
    rng = np.random.default_rng(seed)
    regressor = rng.standard_normal((40, 3, b)) * np.logspace(-1, 1, b)
    noise = rng.uniform(0.5, 2.0, 3)
    return regressor, noise


def test_criteria_are_those_of_the_stacked_weighted_observation_matrix():
    regressor, noise = random_information(0)
    stacked = (regressor / noise[:, None]).reshape(-1, 7) / np.sqrt(40)
    found = measure_excitation(information_matrix(regressor, noise))
    assert found.condition == pytest.approx(np.linalg.cond(stacked), rel=1e-9)
    assert found.condition_scaled == pytest.approx(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)), rel=1e-9)
    assert found.log_det == pytest.approx(np.linalg.slogdet(stacked.T @ stacked)[1], rel=1e-9)
    inverse = np.linalg.inv(stacked.T @ stacked)
    assert found.mean_variance == pytest.approx(np.trace(inverse) / 7, rel=1e-9)
    assert found.worst_variance == pytest.approx(np.linalg.norm(inverse, 2), rel=1e-9)


@pytest.mark.parametrize('side', [-1.0, 1.0])
def test_joint_limits_have_two_sides(side):
    """q = 1.5 - cos(t) is 0.5 beyond one of the limits of 2, a quarter of 2; its mirror image is beyond the other."""
    model = planar_arm(2, limits=limits(2, velocity=100.0, acceleration=100.0))
    swing = FourierTrajectory(
        a=np.zeros((2, 1)), b=np.array([[1.0], [0.1]]), offset=np.array([1.5 * side, 0.0]), base_frequency=0.5 / np.pi
    )
    assert JointRanges(model, model.limits).extreme_excess(swing) == pytest.approx(0.25)


def test_singular_information_has_infinite_condition_numbers():
    regressor, noise = random_information(0)
    regressor[:, :, 3] = 2.0 * regressor[:, :, 1]
    found = measure_excitation(information_matrix(regressor, noise))
    assert np.isinf(found.condition)
    assert np.isinf(found.condition_scaled)


def test_a_parameter_that_never_acts_is_refused():
    regressor, noise = random_information(0)
    regressor[:, :, 3] = 0.0
    with pytest.raises(ExcitationError, match='parameter 4 of 7 acts on no torque'):
        measure_excitation(information_matrix(regressor, noise))


@pytest.mark.parametrize('criterion', CRITERIA)
@pytest.mark.parametrize('sharpness', [1.0, 2.0, 6.0])
def test_criterion_gradients(criterion, sharpness):
    regressor, noise = random_information(1)
    information = information_matrix(regressor, noise)
    direction = np.random.default_rng(2).standard_normal(information.shape) * 1e-2
    direction += direction.T
    _, gradient = criterion_gradient(information, criterion, sharpness)
    numeric = derivative(lambda h: criterion_gradient(information + h * direction, criterion, sharpness)[0])
    assert np.sum(gradient * direction) == pytest.approx(numeric, rel=1e-7)


def test_smooth_condition_tends_to_the_condition_number():
    regressor, noise = random_information(3)
    information = information_matrix(regressor, noise)
    true = np.log(np.linalg.cond((regressor / noise[:, None]).reshape(-1, 7)))
    scaled = np.log(measure_excitation(information).condition_scaled)
    values = [criterion_gradient(information, 'condition', r)[0] - 0.1 * scaled for r in (1.0, 4.0, 16.0, 100.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(true, abs=0.05)


def random_motion(model, seed, observation=None, samples=9):
    rng = np.random.default_rng(seed)
    parts = tuple(rng.standard_normal((4, samples, model.n)))
    return Motion(model, parts, observation)


def constraints_of(model):
    observation = observation_of(model, ExcitationConfig())
    effort = np.full(model.n, 20.0)
    frame = model.link_names[-1]
    return observation, [
        TorqueLimits(model, effort),
        workspace_box(model, ['tip', frame], (-0.2, -np.inf, 0.0), (0.3, 0.4, np.inf)),
        Clearance(model, skeleton(model, 0.04), 0.05),
        ground_clearance(model, skeleton(model, 0.04).capsules, -0.1, 0.02),
    ]


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_constraint_gradients_on_random_arms(seed):
    rng = np.random.default_rng(seed)
    model = random_arm(seed, 4, rng)
    observation, constraints = constraints_of(model)
    for constraint in constraints:
        motion = random_motion(model, seed, observation)
        excess, pull_back = constraint.evaluate(motion)
        weights = rng.uniform(0.0, 1.0, excess.shape)
        gradient = MotionGradient(motion.q.shape)
        pull_back(weights, gradient)
        observation.pull_back(motion, gradient)
        direction = rng.standard_normal((4, *motion.q.shape))

        def shifted(h, motion=motion, direction=direction, constraint=constraint, weights=weights):
            parts = tuple(part + h * d for part, d in zip(motion.derivatives, direction, strict=True))
            return np.sum(weights * constraint.evaluate(Motion(model, parts, observation))[0])

        exact = sum(np.sum(g * d) for g, d in zip(gradient.derivatives, direction, strict=True))
        assert exact == pytest.approx(derivative(shifted, 1e-4), rel=1e-6, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(('fixed', 'at_rest'), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize('criterion', ['condition', 'd-optimal', 'condition-scaled'])
def test_the_whole_gradient_with_every_limit(criterion, fixed, at_rest):
    model = ur10e()
    bounds = model.limits.overridden(jerk=np.full(6, 30.0))
    observation, constraints = constraints_of(model)
    start = [0.2] * 6 if fixed else []
    config = ExcitationConfig(
        criterion=criterion, harmonics=4, period=10.0, start_position=start, start_at_rest=at_rest
    )
    problem = ExcitationProblem(model, bounds, constraints, observation, config)
    rng = np.random.default_rng(4)
    point = 1.2 * problem.random_variables(rng)  # beyond the limits, so that their terms act
    multipliers = [rng.uniform(0.0, 1.0, shape) for shape in problem.multiplier_shapes]
    margins = rng.uniform(0.0, 0.1, len(multipliers))
    _, gradient = problem.lagrangian(point, multipliers, margins, 30.0, 2.0)
    direction = rng.standard_normal(point.shape)
    numeric = derivative(lambda h: problem.lagrangian(point + h * direction, multipliers, margins, 30.0, 2.0)[0], 1e-5)
    assert gradient @ direction == pytest.approx(numeric, rel=1e-6)


def test_free_directions_keep_the_start_at_rest():
    basis = free_directions(5, 0.05, at_rest=True, fixed_start=True)
    assert basis.shape == (11, 8)
    for row in basis.T:
        trajectory = FourierTrajectory.from_coefficients(row[None], 0.05)
        for values in trajectory.evaluate([0.0, trajectory.period]):
            np.testing.assert_allclose(values, 0.0, atol=1e-13)


def test_torque_limits_are_those_of_pinocchio():
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = ur10e()
    observation = observation_of(model, ExcitationConfig()).exact
    effort = np.array([100.0, 50.0, 30.0, 10.0, 5.0, np.inf])
    constraint = TorqueLimits(model, effort)
    motion = random_motion(model, 0, observation)
    excess, _ = constraint.evaluate(motion)
    reference = pinocchio.buildModelFromUrdf(str(UR10E))
    data = reference.createData()
    tau = np.array(
        [pinocchio.rnea(reference, data, *rows) for rows in zip(motion.q, motion.dq, motion.ddq, strict=True)]
    )
    tau += model.damping * motion.dq + model.friction * np.sign(motion.dq) + model.rotor_inertia * motion.ddq
    np.testing.assert_allclose(excess[:, 5:], tau[:, :5] / effort[:5] - 1.0, atol=1e-9)
    np.testing.assert_allclose(excess[:, :5], -tau[:, :5] / effort[:5] - 1.0, atol=1e-9)
    assert len(constraint.bounds) == 10
    assert "torque of joint 'elbow_joint' <= 30 N m" in [bound.label for bound in constraint.bounds]


def test_box_follows_pinocchios_forward_kinematics():
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = ur10e()
    motion = random_motion(model, 1)
    box = workspace_box(model, ['wrist_2_link'], (), (0.1, 0.2, 0.3))
    excess, _ = box.evaluate(motion)
    reference = pinocchio.buildModelFromUrdf(str(UR10E))
    data = reference.createData()
    for k, q in enumerate(motion.q):
        pinocchio.framesForwardKinematics(reference, data, q)
        place = data.oMf[reference.getFrameId('wrist_2_link')].translation
        np.testing.assert_allclose(excess[k], (place - [0.1, 0.2, 0.3]) / 0.1, atol=1e-9)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(['any', 'point', 'parallel', 'points']))
def test_segment_distances_are_coals(seed, kind):
    coal = pytest.importorskip('coal', reason='needs coal, which comes with pin')
    rng = np.random.default_rng(seed)
    start1, end1, start2, end2 = rng.uniform(-1.0, 1.0, (4, 3))
    if kind in ('point', 'points'):
        end2 = start2
    if kind == 'points':
        end1 = start1
    if kind == 'parallel':
        end2 = start2 + rng.uniform(-1.0, 1.0) * (end1 - start1)
    first, second = closest_points(*(p[None] for p in (start1, end1, start2, end2)))
    ours = np.linalg.norm(first - second)

    def capsule(start, end):
        axis = end - start
        length = np.linalg.norm(axis)
        pose = coal.Transform3s()
        pose.setTranslation((start + end) / 2.0)
        if length > 0.0:
            z = axis / length
            x = np.cross(z, [1.0, 0.0, 0.0] if abs(z[0]) < 0.9 else [0.0, 1.0, 0.0])
            x /= np.linalg.norm(x)
            pose.setRotation(np.column_stack([x, np.cross(z, x), z]))
        return coal.Capsule(1e-3, length), pose

    result = coal.DistanceResult()
    theirs = coal.distance(*capsule(start1, end1), *capsule(start2, end2), coal.DistanceRequest(), result)
    assert ours == pytest.approx(theirs + 2e-3, abs=2e-5)


def test_clearance_of_a_folded_planar_arm():
    model = planar_arm(3)
    capsules = [
        Capsule(frame=model.link_names[0], start=[0, 0, 0], end=[0.4, 0, 0], radius=0.05),
        Capsule(frame=model.link_names[2], start=[0, 0, 0], end=[0.4, 0, 0], radius=0.03),
    ]
    clearance = Clearance(model, Geometry(capsules=tuple(capsules)), 0.02)
    # the second link stands upright, the third one lies back over the first, 0.4 m above it
    q = np.array([[0.0, np.pi / 2, np.pi / 2]])
    motion = Motion(model, (q, 0 * q, 0 * q, 0 * q))
    excess, _ = clearance.evaluate(motion)
    assert excess[0, 0] == pytest.approx((0.02 - (0.4 - 0.08)) / 0.1, abs=1e-9)
    assert clearance.bounds[0].label == "clearance of 'link1' from 'link3' >= 0.02 m"


def test_pairs_leave_out_neighbours_ignored_ones_and_the_always_close():
    model = ur10e()
    geometry = skeleton(model, 0.05)
    pairs = geometry.pairs(model, 0.02)
    links = [find_frame(model, capsule.frame)[0] for capsule in geometry.capsules]
    assert pairs
    assert all(abs(links[i] - links[j]) > 1 for i, j in pairs)
    names = frozenset((geometry.capsules[pairs[0][0]].frame, geometry.capsules[pairs[0][1]].frame))
    fewer = Geometry(capsules=geometry.capsules, ignored=frozenset([names])).pairs(model, 0.02)
    assert set(fewer) == set(pairs[1:])


def test_geometry_files(tmp_path):
    file = tmp_path / 'geometry.yaml'
    file.write_text(
        'capsules: [{link: forearm_link, from: [0, 0, 0], to: [0, 0, 0.5], radius: 0.06}]\n'
        'spheres: [{link: wrist_3_link, centre: [0, 0, 0.1], radius: 0.1}]\nignore: [[forearm_link, wrist_3_link]]\n'
    )
    geometry = load_geometry(file)
    assert [capsule.frame for capsule in geometry.capsules] == ['forearm_link', 'wrist_3_link']
    assert (geometry.capsules[1].start == geometry.capsules[1].end).all()
    config = ExcitationConfig(geometry=str(file), ground=True, ground_height=-0.5)
    clearance, ground = workspace_constraints(ur10e(), config)
    assert len(clearance.bounds) == 0  # the only pair is ignored
    assert len(ground.bounds) == 3


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('capsules: 5', "expected a list under 'capsules', got 5"),
        ('ignore: [5]', "expected pairs of different links under 'ignore'"),
        ('capsules: [{link: a, radius: 0.1}]', 'expected an entry with link, from, to, radius'),
        ('capsules: [{link: a, from: [0, 0, 0], to: [0, 0, 1], radius: thick}]', "expected a radius .*'thick'"),
        ('capsules: [{link: a, from: [0, 0], to: [0, 0, 1], radius: 1}]', 'capsule start: expected shape'),
        ('spheres: [{link: a, centre: [0, 0, 0], radius: -1}]', "'a': expected a positive radius"),
        ('ignore: [[a]]', 'pairs of different links'),
        ('capsules: []', 'neither capsules nor spheres'),
        ('boxes: []', "expected 'capsules', 'spheres' and 'ignore'"),
        ('capsules: [', 'cannot be read'),
    ],
)
def test_bad_geometry_files_are_refused(tmp_path, text, message):
    file = tmp_path / 'geometry.yaml'
    file.write_text(text)
    with pytest.raises(ExcitationError, match=message):
        load_geometry(file)


def test_a_link_that_is_fixed_to_the_base_is_a_frame():
    link, placement = find_frame(ur10e(), 'base_link_inertia')  # in the URDF turned by pi about z
    assert link == -1
    np.testing.assert_allclose(placement, np.diag([-1.0, -1.0, 1.0, 1.0]), atol=1e-12)


def test_a_frame_the_robot_does_not_have_is_named():
    with pytest.raises(ExcitationError, match=r"frame 'hand' is not one of the robot's; it has: .*wrist_3_link"):
        workspace_box(ur10e(), ['hand'], (0, 0, 0), ())


def test_scaled_limits_shrink_about_the_middle_and_keep_open_sides():
    bounds = limits(2, 2.0, 3.0).overridden(lower=[-1.0, -np.inf], upper=[3.0, 5.0])
    model = planar_arm(2)
    model = model.with_inertial(model.inertial, limits=bounds)
    scaled = design_limits(model, ExcitationConfig(position_scaling=0.5, velocity_scaling=0.1))
    np.testing.assert_allclose(scaled.lower, [0.0, -np.inf])
    np.testing.assert_allclose(scaled.upper, [2.0, 5.0])
    np.testing.assert_allclose(scaled.velocity, 0.3)


@pytest.mark.parametrize(
    ('settings_', 'message'),
    [
        ({'period': -1.0}, 'period: expected 0.1 to 1000 s, got -1'),
        ({'harmonics': 2.5}, 'harmonics: expected a whole number, got 2.5'),
        ({'criterion': 'best'}, "expected one of condition, .*; got 'best'"),
        ({'noise': 'low'}, "noise: expected a list of numbers, got 'low'"),
        ({'jobs': 0}, 'jobs'),
        ({'viscous': 1}, 'viscous: expected true or false, got 1'),
        ({'workspace_frames': ['tip']}, 'neither workspace_lower nor workspace_upper'),
        ({'workspace_lower': [0, 0, 0]}, 'names no frame'),
        ({'workspace_frames': ['tip'], 'workspace_lower': [0.0]}, 'workspace_lower: expected 0 or 3 entries, got 1'),
        ({'speed': 1}, "'speed' is not a setting"),
        ({'period': float('nan')}, 'period: expected a number, got nan'),
    ],
)
def test_bad_settings_are_refused(settings_, message):
    with pytest.raises(ExcitationError, match=message):
        ExcitationConfig.from_dict(settings_)


def test_settings_survive_a_dictionary():
    config = ExcitationConfig(period=12, noise=[1, 2], workspace_frames=['tip'], workspace_lower=[0, 0, 0.1])
    assert ExcitationConfig.from_dict(config.to_dict()) == config
    assert isinstance(config.period, float)


def test_noise_has_one_positive_number_per_joint():
    with pytest.raises(ExcitationError, match='noise: expected shape'):
        observation_of(planar_arm(2), ExcitationConfig(noise=[1.0]))
    with pytest.raises(ExcitationError, match='positive standard deviations'):
        observation_of(planar_arm(2), ExcitationConfig(noise=[1.0, 0.0]))
