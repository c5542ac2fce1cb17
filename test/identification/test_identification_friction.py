# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction models against finite differences, closed forms and thermodynamics."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from errors_helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FRICTION_MODELS, FRICTION_OPTIONS, friction_model, initial_guess

OPTIONS = ('', '+asymmetric', '+load', '+offset', '+asymmetric+load+offset')
NAMES = [name + option for name in FRICTION_MODELS for option in OPTIONS]


def parameters_of(model, n: int, rng: np.random.Generator) -> np.ndarray:
    weights = rng.uniform(0.2, 2.0, (n, len(model.linear_names)))
    lower, upper = model.shape_bounds(np.full(n, 2.0))
    return np.concatenate([weights @ model.generators.T, np.sqrt(lower * upper)], axis=1)


def dissipates(model, parameters: np.ndarray) -> np.ndarray:
    linear = parameters[:, : len(model.linear_names)]
    weights = np.linalg.solve(model.generators, linear.T).T
    return ((weights >= -1e-9 * np.abs(linear).max(axis=1, keepdims=True)) | np.array(model.signed)).all(axis=1)


@pytest.mark.parametrize('name', NAMES)
def test_derivatives_are_those_of_the_torque(name: str) -> None:
    rng = np.random.default_rng(1)
    model = friction_model(name, velocity_scale=0.1, ripple_frequency=np.array([0.0, 20.0, 7.0]))
    velocity = rng.uniform(-2.0, 2.0, (400, 3))
    velocity = velocity[(np.abs(np.abs(velocity) - 0.01) > 1e-3).all(axis=1)]  # the static level steps there
    load, position = rng.normal(0.0, 10.0, velocity.shape), rng.normal(size=velocity.shape)
    parameters = parameters_of(model, 3, rng)
    k = len(model.linear_names)
    columns, sensitivity = model.basis(velocity, parameters[:, k:], load, position)
    bends = np.einsum('Nnks,nk->Nns', sensitivity, parameters[:, :k])
    by_parameters = np.concatenate([columns, bends], axis=-1)
    np.testing.assert_array_equal(columns, model.columns(velocity, parameters[:, k:], load, position))
    step = 1e-6
    for k in range(parameters.shape[1]):
        shift = np.zeros_like(parameters)
        shift[:, k] = step
        ahead, behind = (model.torque(velocity, parameters + d, load, position) for d in (shift, -shift))
        np.testing.assert_allclose(by_parameters[..., k], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-6)


def test_models_say_what_their_equations_say() -> None:
    v = np.array([[-0.5], [0.004], [0.0], [0.8]])
    cases = {
        'coulomb': ([[3.0]], 3.0 * np.sign(v)),
        'coulomb_viscous': ([[3.0, 2.0]], 3.0 * np.sign(v) + 2.0 * v),
        'static': ([[3.0, 5.0, 2.0]], np.array([[-4.0], [5.008], [0.0], [4.6]])),
        'stribeck': ([[3.0, 5.0, 2.0, 0.1]], (3.0 + 2.0 * np.exp(-((v / 0.1) ** 2))) * np.sign(v) + 2.0 * v),
        'daemi_heimann': ([[3.0, 2.0, -1.0, 8.0]], 3.0 * np.sign(v) + 2.0 * v - np.arctan(8.0 * v)),
    }
    for name, (parameters, torque) in cases.items():
        np.testing.assert_allclose(friction_model(name).torque(v, np.array(parameters)), torque, atol=1e-12)
    load = np.array([[10.0], [-20.0], [5.0], [-1.0]])
    expected = (3.0 + 0.1 * np.abs(load)) * np.sign(v)
    np.testing.assert_allclose(friction_model('coulomb+load').torque(v, np.array([[3.0, 0.1]]), load), expected)
    both = friction_model('coulomb+asymmetric').torque(v, np.array([[3.0, 7.0]]))
    np.testing.assert_allclose(both[:, 0], [-7.0, 3.0, 0.0, 3.0])


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([name for name in NAMES if 'offset' not in name]),
    seed=st.integers(0, 2**31),
    fitted=st.booleans(),
)
def test_friction_never_drives(name: str, seed: int, fitted: bool) -> None:
    """Power v tau_f >= 0 at every speed, for any parameters in the set and for fits to any torque."""
    rng = np.random.default_rng(seed)
    model = friction_model(name)
    velocity, load = rng.uniform(-2.0, 2.0, (80, 2)), rng.normal(0.0, 20.0, (80, 2))
    if fitted:
        parameters = initial_guess(model, velocity, rng.normal(0.0, 3.0, velocity.shape), load)
    else:
        parameters = parameters_of(model, 2, rng) * rng.uniform(0.0, 1.0)
    assert dissipates(model, parameters).all()
    speeds = np.repeat(np.concatenate([-np.geomspace(1e-4, 50, 60), np.geomspace(1e-4, 50, 60)])[:, None], 2, axis=1)
    power = speeds * model.torque(speeds, parameters, rng.normal(0.0, 20.0, speeds.shape))
    assert power.min() >= -1e-9 * max(1.0, np.abs(power).max())


def test_a_friction_that_would_drive_is_recognised() -> None:
    model = friction_model('daemi_heimann')
    assert not dissipates(model, np.array([[1.0, 0.1, -1.0, 8.0]])).any()  # 1 - pi/2 < 0 at high speed
    assert not dissipates(friction_model('coulomb_viscous'), np.array([[1.0, -0.1]])).any()
    assert not dissipates(friction_model('static'), np.array([[1.0, 0.5, 0.1]])).any()  # static below Coulomb


@pytest.mark.parametrize('name', NAMES)
def test_an_expression_for_code_is_the_same_torque(name: str) -> None:
    """The equations evaluated number by number, with the functions of the math module."""
    rng = np.random.default_rng(4)
    functions = SimpleNamespace(
        tanh=math.tanh,
        exp=math.exp,
        abs=abs,
        sign=lambda x: math.copysign(1.0, x) if x else 0.0,
        arctan=math.atan,
        sin=math.sin,
        cos=math.cos,
    )
    frequency = np.array([0.0, 20.0, 7.0])
    for scale in (None, np.array([0.1, 0.2, 0.3])):
        model = friction_model(name, velocity_scale=scale, ripple_frequency=frequency)
        velocity = np.concatenate(
            [rng.uniform(-2.0, 2.0, (20, 3)), rng.uniform(-0.02, 0.02, (20, 3)), np.zeros((1, 3))]
        )
        load, position = rng.normal(0.0, 10.0, velocity.shape), rng.normal(size=velocity.shape)
        parameters = parameters_of(model, 3, rng)
        torque = model.torque(velocity, parameters, load, position)
        for j in range(3):
            values, own = parameters[j].tolist(), model.of_joint(j)
            for i in range(len(velocity)):
                v, f, q = float(velocity[i, j]), float(load[i, j]), float(position[i, j])
                assert own.expression(v, values, f, q, functions=functions) == pytest.approx(torque[i, j], abs=1e-12)


def test_break_away_is_never_below_sliding_friction() -> None:
    rng = np.random.default_rng(5)
    velocity = np.concatenate([rng.uniform(-0.01, 0.01, (300, 1)), rng.uniform(-1.0, 1.0, (300, 1))])
    model = friction_model('static')
    torque = model.torque(velocity, np.array([[3.0, 2.0, 1.0]]))  # a static level below the Coulomb level
    coulomb, static, viscous = initial_guess(model, velocity, torque)[0]
    assert static == pytest.approx(coulomb, abs=1e-9)
    assert 2.0 < coulomb < 3.0
    true = np.array([[2.0, 3.0, 1.0]])
    np.testing.assert_allclose(initial_guess(model, velocity, model.torque(velocity, true)), true, atol=1e-9)
    assert viscous > 0.0


@pytest.mark.parametrize('name', ['stribeck', 'daemi_heimann'])
def test_guess_recovers_the_shape(name: str) -> None:
    rng = np.random.default_rng(3)
    model = friction_model(name)
    velocity = rng.uniform(-2.0, 2.0, (3000, 2))
    true = np.array([[2.0, 4.0, 1.0, 0.3], [6.0, 9.0, 2.0, 0.2]])
    if name == 'daemi_heimann':
        true = np.array([[3.0, 1.0, 2.0, 6.0], [8.0, 2.0, -3.0, 9.0]])
    torque = model.torque(velocity, true) + rng.normal(0.0, 0.01, velocity.shape)
    np.testing.assert_allclose(initial_guess(model, velocity, torque, refine=True), true, rtol=0.03)


def test_unknown_names_are_refused_with_what_there_is() -> None:
    with refused(IdentificationError, name='viscous', expected=FRICTION_MODELS):
        friction_model('viscous')
    with refused(IdentificationError, name='loads', expected=FRICTION_OPTIONS):
        friction_model('coulomb+loads')
    with refused(IdentificationError, name='load', expected=1, found=2):
        friction_model('coulomb+load+offset+load')
    with pytest.raises(IdentificationError, match="'auto\\+load': 'auto' chooses model and options itself"):
        friction_model('auto+load')
    with pytest.raises(IdentificationError, match='needs the transmitted torque'):
        friction_model('coulomb+load').torque(np.ones((2, 1)), np.ones((1, 2)))
    with refused(IdentificationError, name='velocity_scale'):
        friction_model('coulomb', velocity_scale=-1.0)
