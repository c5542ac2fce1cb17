# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

import numpy as np
import pytest
from excitation_helpers import limits
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import FourierTrajectory
from robotid_ros.excitation.constraints import scale_into_joint_limits
from robotid_ros.excitation.fourier import fourier_basis, trajectory_extremes


def random_trajectory(seed, n=3, harmonics=5, frequency=0.0625):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n, harmonics))
    return FourierTrajectory(a=a, b=b, offset=rng.standard_normal(n), base_frequency=frequency)


def by_the_formula(trajectory, t, order):
    """The series term by term; the k-th derivative of a sine is a sine shifted by k quarter turns."""
    result = np.zeros((len(t), trajectory.n))
    for i in range(trajectory.n):
        for k in range(trajectory.harmonics):
            w = 2.0 * np.pi * trajectory.base_frequency * (k + 1)
            shifted = w * t + order * np.pi / 2.0
            result[:, i] += w ** (order - 1) * (
                trajectory.a[i, k] * np.sin(shifted) - trajectory.b[i, k] * np.cos(shifted)
            )
        result[:, i] += trajectory.offset[i] if order == 0 else 0.0
    return result


def test_equals_the_series_term_by_term():
    trajectory = random_trajectory(0)
    t = np.linspace(-5.0, 40.0, 97)
    parts = (trajectory.position(t), trajectory.velocity(t), trajectory.acceleration(t), trajectory.jerk(t))
    for order, values in enumerate(parts):
        np.testing.assert_allclose(values, by_the_formula(trajectory, t, order), atol=1e-12)


def test_basis_columns_are_a_then_b_then_the_offset():
    phi, dphi, ddphi, dddphi = fourier_basis([0.0], 2, 1.0 / (2.0 * np.pi))
    np.testing.assert_allclose(phi, [[0.0, 0.0, -1.0, -0.5, 1.0]], atol=1e-15)
    np.testing.assert_allclose(dphi, [[1.0, 1.0, 0.0, 0.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(ddphi, [[0.0, 0.0, 1.0, 2.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(dddphi, [[-1.0, -4.0, 0.0, 0.0, 0.0]], atol=1e-15)


def test_the_period_is_exact_after_a_thousand_repetitions():
    trajectory = random_trajectory(1)
    t = np.linspace(0.0, trajectory.period, 57)
    np.testing.assert_allclose(trajectory.position(t + 1000 * trajectory.period), trajectory.position(t), atol=1e-10)


def test_samples_of_one_period_do_not_repeat_its_first():
    trajectory = random_trajectory(2)
    t = trajectory.sample_times(100.0)
    assert len(t) == 1600
    assert t[0] == 0.0
    assert t[-1] + (t[1] - t[0]) == pytest.approx(trajectory.period, abs=1e-12)


def test_survives_dictionaries_and_coefficient_rows_to_the_last_digit():
    trajectory = random_trajectory(3)
    for other in (
        FourierTrajectory.from_dict(trajectory.to_dict()),
        FourierTrajectory.from_coefficients(trajectory.coefficients, trajectory.base_frequency),
    ):
        assert (other.coefficients == trajectory.coefficients).all()
        assert other.base_frequency == trajectory.base_frequency


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'base_frequency': 0.0}, 'positive number of Hz'),
        ({'base_frequency': float('nan')}, 'positive number of Hz'),
        ({'b': [[1.0, 2.0]]}, r'b: expected shape \(2, 3\)'),
        ({'offset': [0.0]}, 'offset: expected shape'),
        ({'a': [[1.0, np.nan, 0.0]] * 2}, 'finite'),
        ({'a': np.zeros((2, 0)), 'b': np.zeros((2, 0))}, 'at least one joint and one harmonic'),
    ],
)
def test_refuses_what_is_no_series(changes, message):
    good = {'a': np.ones((2, 3)), 'b': np.ones((2, 3)), 'offset': np.zeros(2), 'base_frequency': 0.1}
    with pytest.raises(ExcitationError, match=message):
        FourierTrajectory(**{**good, **changes})


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ({'a': [], 'b': []}, 'missing: base_frequency, offset'),
        ({'a': [], 'b': [], 'offset': [], 'base_frequency': 'fast'}, "got 'fast'"),
    ],
)
def test_refuses_incomplete_dictionaries(content, message):
    with pytest.raises(ExcitationError, match=message):
        FourierTrajectory.from_dict(content)


def test_refuses_coefficient_rows_of_even_length():
    with pytest.raises(ExcitationError, match='2 L \\+ 1 columns'):
        FourierTrajectory.from_coefficients(np.zeros((2, 4)), 0.1)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), harmonics=st.integers(1, 9), scale=st.floats(1e-6, 1e3))
def test_no_grid_finds_more_than_the_exact_extremes(seed, harmonics, scale):
    raw = random_trajectory(seed, n=2, harmonics=harmonics)
    trajectory = FourierTrajectory(a=scale * raw.a, b=scale * raw.b, offset=raw.offset, base_frequency=0.1)
    values, times = trajectory_extremes(trajectory)
    t = np.linspace(0.0, trajectory.period, 20_000)
    for order, function in enumerate(
        (trajectory.position, trajectory.velocity, trajectory.acceleration, trajectory.jerk)
    ):
        sampled = function(t)
        size = np.abs(sampled).max()
        assert (sampled.min(axis=0) >= values[order, :, 0] - 1e-11 * size).all()
        assert (sampled.max(axis=0) <= values[order, :, 1] + 1e-11 * size).all()
        for j in range(2):  # and they are reached, when they say
            np.testing.assert_allclose(function(times[order, j])[:, j], values[order, j], atol=1e-9 * size)


def test_extremes_of_a_joint_that_stands_still():
    values, _ = trajectory_extremes(
        FourierTrajectory(a=np.zeros((1, 3)), b=np.zeros((1, 3)), offset=[0.7], base_frequency=0.1)
    )
    np.testing.assert_allclose(values[0, 0], 0.7)
    np.testing.assert_allclose(values[1:], 0.0)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), fixed=st.booleans())
def test_scaling_meets_joint_limits_everywhere_and_keeps_the_start(seed, fixed):
    rng = np.random.default_rng(seed)
    trajectory = random_trajectory(seed)
    bounds = limits(
        3, rng.uniform(0.05, 2.0, 3), rng.uniform(0.1, 3.0, 3), rng.uniform(0.1, 9.0, 3), rng.uniform(0.5, 9.0, 3)
    )
    start = None
    if fixed:
        start = rng.uniform(-0.9, 0.9, 3) * bounds.upper
        shift = start - trajectory.position([0.0])[0]
        trajectory = FourierTrajectory(
            a=trajectory.a, b=trajectory.b, offset=trajectory.offset + shift, base_frequency=trajectory.base_frequency
        )
    scaled = scale_into_joint_limits(trajectory, bounds, start)
    t = np.linspace(0.0, scaled.period, 5000)
    assert (scaled.position(t) <= bounds.upper).all()
    assert (scaled.position(t) >= bounds.lower).all()
    assert (np.abs(scaled.velocity(t)) <= bounds.velocity).all()
    assert (np.abs(scaled.acceleration(t)) <= bounds.acceleration).all()
    assert (np.abs(scaled.jerk(t)) <= bounds.jerk).all()
    if start is not None:
        np.testing.assert_allclose(scaled.position([0.0])[0], start, atol=1e-12)


def test_scaling_leaves_alone_what_fits():
    trajectory = random_trajectory(5)
    wide = limits(3, 1e3, 1e3, 1e3, 1e3)
    assert (scale_into_joint_limits(trajectory, wide).coefficients == trajectory.coefficients).all()
