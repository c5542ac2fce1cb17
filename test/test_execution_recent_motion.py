# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What joint states say of a motion: whether the arm rests, and how fast it is."""

import numpy as np

from robotid_ros.execution.recent_motion import RecentMotion


def seen(position, until: float = 2.0) -> RecentMotion:
    """Return what a check knows of a motion, sampled at 500 Hz with an encoder's noise."""
    rng, check = np.random.default_rng(0), RecentMotion()
    for stamp in np.arange(0.0, until, 0.002):
        check.receive(1e9 + stamp, np.array([0.3, position(stamp)]) + 1e-4 * rng.standard_normal(2))
    return check


def test_an_arm_that_stands_rests() -> None:
    assert seen(lambda t: -1.2).resting(1e9 + 1.0) is True
    assert seen(lambda t: max(0.0, 1.0 - t)).resting(1e9 + 1.0) is True


def test_an_arm_that_creeps_does_not() -> None:
    assert seen(lambda t: 0.08 * t).resting(1e9 + 1.0) is False


def test_nothing_is_said_before_enough_was_seen() -> None:
    assert RecentMotion().resting(0.0) is None
    assert seen(lambda t: 0.0, until=1.04).resting(1e9 + 1.0) is None
    assert seen(lambda t: 0.0).resting(1e9 + 3.0) is None


def test_a_clock_that_is_set_back_does_not_confuse_it() -> None:
    check = seen(lambda t: t)
    for stamp in np.arange(0.0, 0.2, 0.002):
        check.receive(5e8 + stamp, np.array([0.3, 2.0]))
    assert check.resting(5e8) is True


def test_a_velocity_is_measured_or_the_slope_of_the_positions() -> None:
    told, computed = RecentMotion(), RecentMotion()
    for stamp in np.arange(0.0, 1.0, 0.002):
        told.receive(1e9 + stamp, np.array([0.7 * stamp]), np.array([0.9]))
        computed.receive(1e9 + stamp, np.array([0.7 * stamp]))
    assert told.latest.velocity == 0.9
    np.testing.assert_allclose(computed.latest.velocity, 0.7, rtol=1e-6)
    np.testing.assert_allclose(computed.latest.after(0.1).position, 0.7 * 1.098, rtol=1e-6)
