# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Results of one arm over each other: what moved is named, and what did not is left alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identification_helpers import as_described
from report_helpers import moving_arm

from robotid_ros.cli import main
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import IdentificationError
from robotid_ros.identification import IdentificationResult, identify
from robotid_ros.model import RobotModel
from robotid_ros.report.compare import changes, comparison_report, threshold

Result = IdentificationResult


def identified(model: RobotModel, data: Dataset, friction: str = 'coulomb_viscous') -> Result:
    with as_described():
        return identify(data, model, friction=friction)


@pytest.fixture(scope='module')
def before() -> Result:
    return identified(*moving_arm(0))


@pytest.fixture(scope='module')
def same() -> Result:
    return identified(*moving_arm(5))


@pytest.fixture(scope='module')
def loaded() -> Result:
    """The same arm with 1 kg more at the forearm, and less viscous friction in the second joint."""
    model, data = moving_arm(5)
    heavier = np.zeros((6, 10))
    heavier[2, 9] = 1.0  # kg, at 0.3 m along x of the forearm
    heavier[2, 6] = -0.3
    heavier[2, 3] = heavier[2, 5] = 0.09
    more = inverse_dynamics(
        model.with_inertial(heavier, rotor_inertia=np.zeros(6)), data.q, data.dq, data.ddq
    ) - 1.0 * data.dq * np.eye(6)[1]  # fmt: skip
    tau = data.tau + more
    return identified(model, replace(data, tau=tau, tau_filtered=tau))


@pytest.mark.slow
def test_an_unchanged_arm_has_not_changed(before: Result, same: Result) -> None:
    verdict = comparison_report([('May', before), ('June', same)]).verdict
    assert verdict is not None
    assert (verdict.level, verdict.headline) == ('good', 'No change to be seen')


@pytest.mark.slow
def test_a_load_and_less_friction_are_named(before: Result, same: Result, loaded: Result) -> None:
    report = comparison_report([('May', before), ('June', same), ('July', loaded)])
    assert report.verdict is not None
    assert report.verdict.headline == 'The arm has changed'
    assert 'viscous shoulder_lift_joint' in report.verdict.reasons[0]
    assert any(name in report.verdict.reasons[0] for name in ('mx3', 'mx2', 'Izz2'))
    for quiet in ('coulomb', 'viscous wrist', 'Ia5', 'Ia6'):
        assert quiet not in report.verdict.reasons[0]
    drift, friction = report.figures
    charts = {chart.title: chart for chart in drift.charts}
    assert set(charts) == {*before.link_names, 'friction'}
    viscous = next(t for t in charts['friction'].traces if t['name'] == 'viscous shoulder_lift_joint')
    k = before.friction_names.index('viscous')
    spread = np.hypot(before.friction_std[1, k], loaded.friction_std[1, k])
    assert viscous['y'][-1] == pytest.approx((loaded.friction_values[1, k] - before.friction_values[1, k]) / spread)
    assert viscous['y'][0] == 0.0
    curves = friction.charts[1].traces
    assert [curve['name'] for curve in curves] == ['May', 'June', 'July']
    lost = curves[0]['y'] - curves[2]['y']
    np.testing.assert_allclose(lost, curves[0]['x'], atol=0.25)  # 1 N m s/rad, and what the noise makes of it


@pytest.mark.slow
def test_friction_curves_leave_out_what_depends_on_the_position() -> None:
    result = identified(*moving_arm(0), friction='coulomb_viscous+spring')
    curves = comparison_report([('May', result), ('June', result)]).figures[1].charts
    for curve, values, scale in zip(curves, result.friction_values, result.friction.velocity_scale, strict=True):
        speed = curve.traces[0]['x']
        dry, viscous = values[:2]
        np.testing.assert_allclose(curve.traces[1]['y'], dry * np.tanh(speed / scale) + viscous * speed, atol=1e-12)


def test_one_comparison_in_a_hundred_of_equal_arms_raises_an_alarm() -> None:
    rng = np.random.default_rng(1)
    count, trials = 50, 4000
    std = np.stack([np.linspace(0.1, 3.0, count), np.linspace(2.0, 0.2, count)])
    alarms = 0
    for _ in range(trials):
        alarms += bool(np.abs(changes(rng.normal(0.0, std), std)[-1]).max() > threshold(count))
    assert 0.005 < alarms / trials < 0.015


def test_what_cannot_be_compared_is_refused(before: Result) -> None:
    with pytest.raises(IdentificationError, match='two or more results'):
        comparison_report([('May', before)])
    other = replace(before, joint_names=('other', *before.joint_names[1:]))
    with pytest.raises(IdentificationError, match='June is not of the arm of May'):
        comparison_report([('May', before), ('June', other)])


def test_the_command_reads_folders_and_says_what_moved(
    before: Result, loaded: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, result in (('may', before), ('july', loaded)):
        (tmp_path / name).mkdir()
        result.save(tmp_path / name / 'result.yaml')
    words = [
        'compare',
        str(tmp_path / 'may'),
        str(tmp_path / 'july' / 'result.yaml'),
        '--out',
        str(tmp_path / 'c.html'),
    ]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert 'from may to july' in said
    assert 'The arm has changed' in said
    assert main(['compare', str(tmp_path / 'may'), '--out', str(tmp_path / 'c.html')]) == 2
    assert 'two or more results' in capsys.readouterr().err
