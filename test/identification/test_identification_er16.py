# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An ER-16-like arm in MuJoCo with Daemi-Heimann friction, from optimal excitation to the match in validation."""

from dataclasses import replace

import numpy as np
import pytest
from er16_helpers import er16, er16_data, er16_design, er16_truth

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification import IdentificationConfig, identify, torque_metrics
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_config import RobotConfig, configured_arm
from robotid_ros.report.content import Figure
from robotid_ros.report.identification import identification_report, provenance_items

pytest.importorskip('mujoco', reason='needs the sim extra')

TRUTH = er16_truth(0)


@pytest.fixture(scope='module')
def runs():
    # Two periods of less noise: as noisy as four of the usual one, and simulated in three fifths of the time.
    fewer = {'periods': 2, 'effort_noise': 7e-4}
    return er16_data(TRUTH, er16_design(1), 1, **fewer), er16_data(TRUTH, er16_design(11), 2, **fewer)


@pytest.mark.slow
def test_the_packaged_arm_is_that_of_the_published_rows() -> None:
    configuration = RobotConfig.from_yaml(arm_file('er16').with_suffix('.yaml'))
    packaged, published = configured_arm(str(arm_file('er16')), configuration), er16()
    state = np.random.default_rng(0).normal(size=(3, 50, 3))
    np.testing.assert_allclose(inverse_dynamics(packaged, *state), inverse_dynamics(published, *state), atol=1e-10)
    for name in ('lower', 'upper', 'velocity', 'acceleration', 'effort'):
        np.testing.assert_allclose(getattr(packaged.limits, name), getattr(published.limits, name), rtol=1e-12)
    assert not packaged.rotor_inertia.any()


@pytest.mark.slow
def test_daemi_heimann_friction_matches_a_trajectory_it_has_not_seen(runs) -> None:
    training, validation = runs
    found = identify(training, er16(), friction='daemi_heimann', estimator='wls', validation=validation)
    assert found.usable
    match = found.metrics['validation'].match
    assert (match >= 97.0).all()
    predicted = TRUTH.torque(validation.q, validation.dq, validation.ddq)
    best = torque_metrics(validation.joint_names, validation.tau, predicted).match
    np.testing.assert_allclose(match, best, atol=0.2)

    speed = np.linspace(-1.0, 1.0, 41)[:, None] * np.abs(validation.dq).max(axis=0)
    coulomb, viscous, gain, rate = found.friction_values[:, :4].T
    curve = coulomb * np.sign(speed) + viscous * speed + gain * np.arctan(rate * speed)
    true = TRUTH.friction.torque(speed)
    np.testing.assert_allclose(curve, true, atol=0.03 * np.abs(true).max())


@pytest.mark.slow
def test_the_published_bee_colony_ends_below_separable_least_squares_and_nearer_with_more_cycles(runs) -> None:
    """Match of 86, 90 and 89 % is what the method's publication has on the real arm."""
    training, validation = runs
    matches = []
    for cycles, limit in ((50, 15), (600, 100)):
        config = IdentificationConfig(
            friction='auto',
            estimator='bee-colony',
            colony_cycles=cycles,
            colony_limit=limit,
            rotor_inertia=False,  # the publication's 27 parameters
        )
        found = identify(training, er16(), validation=validation, config=config)
        assert found.friction.name == 'daemi_heimann'
        (decision,) = (each for each in found.decisions if each.subject == 'estimator')
        assert f'27 parameters, 30 bees, limit {limit}, {cycles} cycles, {30 * (cycles + 1) // 100}' in decision.chosen
        bees, direct = (each.error for each in decision.alternatives)
        assert (direct < 1.05 * bees).all()
        assert len(found.provenance['search']) == cycles + 1
        (fitness,) = (item for item in provenance_items(found) if isinstance(item, Figure))
        assert f'in {cycles} cycles' in fitness.charts[0].alt
        y = np.array(fitness.charts[0].traces[0]['y'])
        assert 0.0 < y[0] < 0.9 < y[-1] < 1.0
        assert (np.diff(y) >= 0.0).all()
        matches.append(found.metrics['validation'].match)
    few = IdentificationConfig(estimator='bee-colony', colony_cycles=50, colony_limit=15, rotor_inertia=False)
    # Rounding, which differs from processor to processor, is enough to send the bees elsewhere: of one seed, 79 to 95.
    others = [identify(training, er16(), validation=validation, config=few, seed=seed) for seed in range(1, 5)]
    matches[0] = np.median([matches[0], *(each.metrics['validation'].match for each in others)], axis=0)
    assert (matches[0] > 82.0).all()  # 75 with friction bounded by the whole torque
    assert (matches[1] > 94.0).all()
    assert (matches[0] < matches[1]).all()


@pytest.mark.slow
def test_a_result_that_is_worse_than_the_description_says_so(runs) -> None:
    training, validation = runs
    described = replace(er16(), friction=TRUTH.friction.coulomb, damping=TRUTH.friction.viscous)
    speed, measured = validation.dq, validation.tau
    before = inverse_dynamics(described, validation.q, speed, validation.ddq)
    before += described.friction * np.sign(speed) + described.damping * speed
    left = 100.0 * np.linalg.norm(measured - before) / np.linalg.norm(measured)
    for estimator in ('bee-colony', 'wls'):
        config = IdentificationConfig(
            friction='daemi_heimann', estimator=estimator, rotor_inertia=False, colony_cycles=1
        )
        found = identify(training, described, validation=validation, config=config)
        assert found.usable
        worse = found.metrics['validation'].relative_error_total > left
        assert worse == (estimator == 'bee-colony')
        page = identification_report(described, found, training, validation=validation)
        assert ('The robot description explains more of it' in ' '.join(page.verdict.reasons)) == worse


@pytest.mark.slow
def test_all_terms_describe_a_law_that_is_none_of_them(runs) -> None:
    training, validation = runs
    found = identify(training, er16(), friction='auto', validation=validation)
    assert (found.metrics['validation'].match >= 97.0).all()
