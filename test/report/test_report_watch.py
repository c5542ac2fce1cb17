# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The terminal view."""

import numpy as np
import pytest

from robotid_ros.report.live import JointFit, MotionView, NodeStatus, page_message, render_watch

EXCITATION = NodeStatus(
    name='excitation',
    level='ok',
    message='running',
    values={'phase': 'period 3', 'elapsed': '26.5', 'duration': '53', 'tracking_error': '0.0012'},
)
RECORDER = NodeStatus(
    name='recorder',
    level='warn',
    message='recording 12345 messages; found: 3 gaps',
    values={'rate': '499.8', 'messages': '12345', 'gaps': '3', 'periods_averaged': '2', 'periods_left_out': '1'},
)


def test_it_shows_phase_rate_and_gaps() -> None:
    text = render_watch([EXCITATION, RECORDER, NodeStatus(name='identification', level='silent', message='')])
    lines = text.splitlines()
    assert lines[0].startswith('● excitation')
    assert 'period 3' in text
    assert '████████████············ 26 of 53 s' in text
    assert '499.8 Hz\n' in text  # the message says the rest
    assert '2 periods averaged, 1 left out' in text
    assert '▲ recorder' in text
    assert '○ identification no status yet' in text
    assert '\033' not in text


@pytest.mark.parametrize('width', [30, 80])
def test_lines_fit_the_terminal(width: int) -> None:
    fit = JointFit(('a_joint_with_a_very_long_name_indeed', 'b'))
    text = render_watch([EXCITATION, RECORDER], fit, width=width)
    assert max(len(line) for line in text.splitlines()) <= width


def test_it_shows_the_parameters_converge() -> None:
    values = {
        'relative_error': '1.2',
        'condition_number': '60',
        'worst_parameter': 'my2',
        'worst_deviation': '3.3',
        'deviation_asked': '2.0',
        'parameter/my2': '0.61 +- 0.02',
    }
    text = render_watch([NodeStatus(name='identification', level='ok', message='', values=values)])
    assert 'least known: my2 0.61 +- 0.02, deviation 3.3 %, asked 2.0 %' in text
    text = render_watch([NodeStatus(name='i', level='ok', message='', values={**values, 'deviation_asked': '0.0'})])
    assert 'deviation 3.3 %\n' in f'{text}\n'


def test_colour_marks_levels() -> None:
    text = render_watch([RECORDER], colour=True)
    assert text.startswith('\033[33m▲\033[0m recorder')


def test_the_fit_is_a_running_root_mean_square() -> None:
    fit = JointFit(('pan', 'lift'), memory=1.0)
    t = np.arange(0.0, 40.0, 0.01)
    for time in t:
        wave = np.sin(20.0 * time)
        fit.update(float(time), np.array([9.0 * wave, 0.0]), np.array([1.0 * wave, 2.0]))
    np.testing.assert_allclose(fit.torque_rms, [10.0 / np.sqrt(2.0), 2.0], rtol=0.03)
    np.testing.assert_allclose(fit.error_rms, [1.0 / np.sqrt(2.0), 2.0], rtol=0.03)
    lines = render_watch([], fit).splitlines()
    assert lines[-2].split()[-2:] == ['90', '%']
    assert lines[-1].split()[-2:] == ['0', '%']


def test_garbled_values_do_not_break_the_view() -> None:
    text = render_watch([NodeStatus(name='x', level='error', message='m', values={'elapsed': '?', 'duration': 'nan'})])
    assert text.startswith('■ x')


def test_the_page_gets_the_motion_beside_its_reference_and_the_limits() -> None:
    motion = MotionView()
    motion.limits, motion.sliding = {'turn': (-1.0, 2.0)}, {'lift'}
    motion.joint_names = ('turn', 'lift')
    motion.reference = 10.0, np.array([0.0, 2.0]), np.array([[0.0, 0.0], [2.0, 4.0]])
    names = ('lift', 'finger', 'turn')
    assert not motion.take(10.5, ('lift',), [0.0], [])  # lacks a joint
    assert motion.take(10.5, names, [1.25, 7.0, 0.5], [3.0, 7.0, 2.0])
    assert not motion.take(10.52, names, [1.25, 7.0, 0.5], [])  # too soon after the last
    assert motion.take(13.0, names, [2.5, 7.0, 1.0], [])  # in the second period
    fit = JointFit(('turn', 'lift'))
    fit.update(10.0, np.array([3.0, 0.0]), np.array([1.0, 0.0]))
    message = page_message([EXCITATION], fit, motion, [(10.5, [1.0, 2.0], [0.5, 1.5])], list(motion.samples), 10.0)
    assert message['progress'] == 0.5
    assert message['notes'] == ['75 % explained', 'has not moved yet']
    assert message['samples'] == {'t': [0.5], 'measured': [[1.0, 2.0]], 'predicted': [[0.5, 1.5]]}
    drawn = message['motion']
    assert drawn['t'] == [0.5, 3.0]
    assert drawn['position'] == [[0.5, 1.25], [1.0, 2.5]]
    assert drawn['reference'] == [[0.5, 1.0], [1.0, 2.0]]
    assert drawn['effort'] == [[2.0, 3.0], None]
    assert drawn['limits'] == [[-1.0, 2.0], [None, None]]
    assert drawn['notes'] == ['off its reference by 0 rad', 'off its reference by 0.5 m']
