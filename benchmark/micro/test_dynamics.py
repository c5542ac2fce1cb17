# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Single functions of the dynamics, 10 000 samples of a UR10."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from robotid_ros.dynamics import base_parameters, full_regressor, minimal_model
from robotid_ros.dynamics.codegen.compiler import find_compiler
from robotid_ros.dynamics.newton_euler import newton_euler
from robotid_ros.model import RobotModel

At = tuple[np.ndarray, np.ndarray, np.ndarray]
KERNELS = [pytest.param(True, marks=pytest.mark.skipif(find_compiler() is None, reason='no compiler')), False]


@pytest.mark.benchmark(group='inverse dynamics')
@pytest.mark.parametrize('compiled', KERNELS, ids=['compiled', 'numpy'])
def test_inverse_dynamics(benchmark: BenchmarkFixture, robot: RobotModel, at: At, compiled: bool) -> None:
    model, out = minimal_model(robot), np.empty((len(at[0]), 6))
    benchmark(model.inverse_dynamics, *at, out=out, compiled=compiled)
    np.testing.assert_allclose(out, newton_euler(robot, *at), atol=1e-9)


@pytest.mark.benchmark(group='inverse dynamics')
def test_newton_euler_recursion(benchmark: BenchmarkFixture, robot: RobotModel, at: At) -> None:
    assert benchmark(newton_euler, robot, *at).shape == (len(at[0]), 6)


@pytest.mark.benchmark(group='regressor')
def test_base_regressor(benchmark: BenchmarkFixture, robot: RobotModel, at: At) -> None:
    base = base_parameters(robot)
    out = np.empty((len(at[0]), 6, len(base.independent)))
    benchmark(base.regressor, *at, out=out)
    np.testing.assert_allclose(out, full_regressor(robot, *at)[..., base.independent], atol=1e-9)


@pytest.mark.benchmark(group='regressor')
def test_gradient_of_base_regressor(benchmark: BenchmarkFixture, robot: RobotModel, at: At) -> None:
    base = base_parameters(robot)
    weights = np.ones((len(at[0]), 6, len(base.independent)))
    assert len(benchmark(base.regressor_vjp, *at, weights)) == 3


@pytest.mark.benchmark(group='base parameters')
def test_base_parameters(benchmark: BenchmarkFixture, robot: RobotModel) -> None:
    found = benchmark(base_parameters, robot, rotor_inertia=True, viscous=True, coulomb=True, offset=True)
    assert len(found.independent) == 58
