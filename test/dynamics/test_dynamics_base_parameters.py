# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Base parameters: published sets, regrouping, robustness, and the kernels that evaluate their regressor."""

import pickle

import numpy as np
import pytest
from dynamics_helpers import ARMS, HALF, LWR4_MDH, PUMA560_MDH, UR10_DH, arm, dh_robots, motion
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.dynamics import base_parameters, full_regressor, observation_matrix
from robotid_ros.dynamics.base_parameter_set import reduced_columns
from robotid_ros.errors import DataError, ModelError
from robotid_ros.model import RobotModel

ALL = {'rotor_inertia': True, 'viscous': True, 'coulomb': True, 'offset': True}


def test_er16_has_its_fifteen_published_parameters():
    # The main axes of the ER-16, gravity along the first: one inertia of link 1, seven parameters of 2 and 3.
    model = RobotModel.from_mdh([(np.pi, 0, 0, 0), (HALF, 0.16, 0, -HALF), (0, 0.68, 0, 0)], gravity=(0, 0, -9.81))
    base = base_parameters(model)
    kept = [base.columns[k] for k in base.independent]
    links = (('Izz',), ('Ixx', 'Ixy', 'Ixz', 'Iyz', 'Izz', 'mx', 'my'), ('Ixx', 'Ixy', 'Ixz', 'Iyz', 'Izz', 'mx', 'my'))
    assert kept == [f'{name}{k}' for k, names in enumerate(links, start=1) for name in names]
    assert [name.split()[0] for name in base.names] == kept
    # Regrouping by the classical rules (Khalil and Dombre 2002, eq. 9.55): a3 = 0.68, a2 = 0.16.
    relations = dict(line.split(' = ') for line in base.relations())
    assert relations['mx2_b'] == 'mx2 + 0.68*m3'
    assert relations['Izz2_b'] == 'Izz2 + 0.4624*m3'
    assert relations['Ixz2_b'] == 'Ixz2 - 0.68*mz3'
    assert relations['Ixx2_b'] == 'Ixx2 - Iyy2 - 0.4624*m3'
    assert relations['Izz1_b'] == 'Izz1 + Iyy2 + 0.0256*m2 + Iyy3 + 0.488*m3'
    assert {'Ixx1', 'mx1', 'my1', 'mz1', 'm1'} <= set(base.never_acting)


@pytest.mark.parametrize(
    ('rows', 'build', 'count'),
    [(PUMA560_MDH, RobotModel.from_mdh, 36), (UR10_DH, RobotModel.from_dh, 36), (LWR4_MDH, RobotModel.from_mdh, 43)],
)
def test_known_arms_have_their_published_number(rows, build, count):
    # PUMA 560: 36 (Mayeda, Yoshida and Osuka 1990); UR10: 36; a seven-axis arm with a vertical first axis: 43.
    assert len(base_parameters(build(rows)).independent) == count


@settings(max_examples=20, deadline=None, derandomize=True)
@given(dh_robots(), st.tuples(*[st.booleans()] * 4))
def test_base_parameters_explain_what_all_parameters_do(model, flags):
    options = dict(zip(ALL, flags, strict=True))
    base = base_parameters(model, **options)
    q, dq, ddq = motion(model.n, 12, seed=5)
    full = full_regressor(model, q, dq, ddq, **options)
    delta = np.random.default_rng(2).normal(size=full.shape[2])
    reduced = base.regressor(q, dq, ddq)
    np.testing.assert_allclose(reduced, full[:, :, base.independent], atol=1e-10)
    np.testing.assert_allclose(reduced @ (base.map @ delta), full @ delta, atol=1e-10 * max(1.0, np.abs(full).max()))
    observed = observation_matrix(full_regressor(model, *motion(model.n, 200, seed=6), **options))
    length = np.linalg.norm(observed, axis=0)
    acting = length > 1e-9
    if acting.any():
        singular = np.linalg.svd(observed[:, acting] / length[acting], compute_uv=False)
        assert len(base.independent) == int((singular > 1e-9).sum())
    for name in base.never_acting:
        assert np.abs(full[:, :, base.columns.index(name)]).max() < 1e-9


@pytest.mark.parametrize('name', ARMS)
def test_real_arms_keep_their_torque(name):
    model = arm(name)
    base = base_parameters(model, **ALL)
    q, dq, ddq = motion(model.n, 33)
    delta = np.random.default_rng(3).normal(size=len(base.columns))
    expected = full_regressor(model, q, dq, ddq, **ALL) @ delta
    got = base.regressor(q, dq, ddq) @ (base.map @ delta)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)


def test_the_random_samples_do_not_matter():
    model = arm('panda')
    samples = (motion(model.n, 160, seed=seed) for seed in (1, 2))
    first, second = (reduced_columns(observation_matrix(full_regressor(model, *each)), 1e-9) for each in samples)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_allclose(first[2], second[2], atol=1e-11)


def test_gravity_direction_decides_what_acts_on_the_first_joint():
    upright = base_parameters(arm('ur5'))
    tilted = base_parameters(arm('ur5', gravity=(0.0, -9.81, 0.0)))
    weightless = base_parameters(arm('ur5', gravity=(0.0, 0.0, 0.0)))
    assert len(upright.independent) == 36
    assert len(tilted.independent) == 38
    assert {'mx1', 'my1'} <= {tilted.columns[k] for k in tilted.independent}
    assert {'mx1', 'my1', 'm1'} <= set(upright.never_acting)
    # Without gravity nothing accelerates the origin of link 2 but the first axis, which it is on.
    lost = {upright.columns[k] for k in upright.independent} - {weightless.columns[k] for k in weightless.independent}
    assert lost == {'mx2', 'mz2'}


def test_descriptions_with_short_right_angles_need_a_tolerance():
    # The xArm's right angles are written 1.5708: at 1e-9 that counts as its geometry.
    assert len(base_parameters(arm('kinova'), tolerance=1e-12).independent) > len(
        base_parameters(arm('kinova'), tolerance=1e-5).independent
    )


def test_the_tolerance_has_bounds_on_both_sides():
    # Gravity or an axis tilted by an angle: round-off at 1e-12, geometry at 1e-8.
    def ur5(tilt: float) -> RobotModel:
        return arm('ur5', gravity=(tilt * 9.81, 0.0, -9.81))

    def planar(tilt: float) -> RobotModel:
        return RobotModel.from_mdh([(0, 0, 0, 0), (tilt, 0.4, 0, 0), (0, 0.4, 0.1, 0)])

    for build, exact, tilted in ((ur5, 36, 38), (planar, 7, 11)):
        found = [len(base_parameters(build(tilt)).independent) for tilt in (0.0, 1e-12, 1e-8)]
        assert found == [exact, exact, tilted]
        loose = [len(base_parameters(build(tilt), tolerance=1e-5).independent) for tilt in (1e-8, 1e-3)]
        assert loose == [exact, tilted]


@pytest.mark.parametrize('tolerance', [0.0, -1.0, 1.0, np.nan])
def test_a_tolerance_outside_its_range_is_refused(tolerance):
    with pytest.raises(ModelError, match='tolerance'):
        base_parameters(arm('ur5'), tolerance=tolerance)


def test_names_are_for_people_and_relations_are_complete():
    base = base_parameters(arm('xarm7'))
    assert len(set(base.names)) == len(base.names)
    assert base.names[0] == 'Izz1 + Iyy2'
    assert all('e-' not in name and '1*' not in name.split(' ') for name in base.names)
    assert base.relations()[0].startswith('Izz1_b = Izz1 + ')
    assert 'e-11*Iyy3' in base.relations()[0]


def test_values_are_the_models_own():
    model = arm('ur5')
    base = base_parameters(model, rotor_inertia=True)
    q, dq, ddq = motion(6, 5)
    expected = full_regressor(model, q, dq, ddq) @ model.inertial.ravel()
    np.testing.assert_allclose(base.regressor(q, dq, ddq) @ base.values, expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize('compiled', [True, False])
def test_the_gradient_equals_differences_of_the_batch_regressor(compiled):
    model = arm('panda')
    base = base_parameters(model, rotor_inertia=True, viscous=True)
    q, dq, ddq = motion(model.n, 11)
    weights = np.random.default_rng(4).normal(size=(11, model.n, len(base.independent)))
    slopes = base.regressor_vjp(q, dq, ddq, weights, compiled=compiled)
    for which, slope in enumerate(slopes):
        for joint in range(model.n):
            estimate = np.zeros(11)
            # Sixth-order central differences: error below the rounding of the values.
            for step, factor in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
                for side in (1, -1):
                    moved = [q.copy(), dq.copy(), ddq.copy()]
                    moved[which][:, joint] += side * step * 5e-3
                    value = np.einsum(
                        'kij,kij->k',
                        full_regressor(model, *moved, rotor_inertia=True, viscous=True)[:, :, base.independent],
                        weights,
                    )
                    estimate += side * factor * value / 5e-3
            np.testing.assert_allclose(slope[:, joint], estimate, rtol=1e-9, atol=1e-9 * np.abs(slope).max())


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(dh_robots(), st.integers(0, 2**32 - 1))
def test_the_gradient_is_the_slope_along_any_direction(model, seed):
    base = base_parameters(model, viscous=True, coulomb=True)
    if not len(base.independent):
        return
    rng = np.random.default_rng(seed)
    q, dq, ddq, vq, vdq, vddq = rng.uniform(0.2, 1.0, (6, 3, model.n))
    weights = rng.normal(size=(3, model.n, len(base.independent)))

    def value(step: float) -> np.ndarray:
        return np.einsum('kij,kij->k', base.regressor(q + step * vq, dq + step * vdq, ddq + step * vddq), weights)

    h = 1e-2
    estimate = sum(f * (value(s * h) - value(-s * h)) for s, f in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))) / h
    gq, gdq, gddq = base.regressor_vjp(q, dq, ddq, weights, compiled=False)
    slope = (gq * vq + gdq * vdq + gddq * vddq).sum(axis=1)
    np.testing.assert_allclose(slope, estimate, rtol=1e-7, atol=1e-7)


def test_a_written_array_is_the_result():
    base = base_parameters(arm('ur5'))
    q, dq, ddq = motion(6, 5)
    out = np.full((5, 6, 36), np.nan)
    assert base.regressor(q, dq, ddq, out=out) is out
    np.testing.assert_array_equal(out, base.regressor(q, dq, ddq))
    with pytest.raises(DataError, match='out: expected'):
        base.regressor(q, dq, ddq, out=np.zeros((5, 6, 35)))
    with pytest.raises(DataError, match='weights: expected shape'):
        base.regressor_vjp(q, dq, ddq, np.zeros((5, 6, 35)))


def test_they_travel_to_other_processes():
    base = base_parameters(arm('ur5'))
    q, dq, ddq = motion(6, 5)
    expected = base.regressor(q, dq, ddq)
    copy = pickle.loads(pickle.dumps(base))
    np.testing.assert_array_equal(copy.regressor(q, dq, ddq), expected)
