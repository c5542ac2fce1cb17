# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Single functions between a message and a fit."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from robotid_ros.excitation import FourierTrajectory
from robotid_ros.friction import friction_model, initial_guess
from robotid_ros.signals.smoothing import five_point_cubic


@pytest.mark.benchmark(group='excitation')
def test_evaluation_of_a_fourier_series(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(0)
    series = FourierTrajectory(
        base_frequency=0.05,
        a=rng.normal(size=(6, 5)),
        b=rng.normal(size=(6, 5)),
        offset=np.zeros(6),
    )
    q, _, _ = benchmark(series.evaluate, np.arange(20_000) / 1000.0)
    assert q.shape == (20_000, 6)


@pytest.mark.benchmark(group='signals')
def test_five_point_cubic_smoothing(benchmark: BenchmarkFixture) -> None:
    t = np.linspace(-1.0, 1.0, 25_000)[:, None]
    cubic = 1.0 + t - 2.0 * t**2 + 3.0 * t**3
    np.testing.assert_allclose(benchmark(five_point_cubic, np.tile(cubic, (1, 6)))[:, :1], cubic, atol=1e-12)


@pytest.mark.benchmark(group='friction')
def test_separable_fit_of_daemi_heimann_friction(benchmark: BenchmarkFixture) -> None:
    model = friction_model('daemi_heimann')
    velocity = np.sin(np.linspace(0.0, 20.0, 2000))[:, None]
    true = np.array([[5.0, 3.0, 4.0, 8.0]])
    found = benchmark(initial_guess, model, velocity, model.torque(velocity, true), refine=True)
    np.testing.assert_allclose(found, true, rtol=1e-2)
