# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The difference of two clocks, told from a busy computer."""

import numpy as np
import pytest

from robotid_ros.execution.run_clock import ClockOffset


def offset_of(difference: float, delays: np.ndarray) -> ClockOffset:
    """Return what is known after messages of a clock that is ``difference`` seconds behind."""
    offset = ClockOffset()
    for k, delay in enumerate(delays):
        measured = 1e9 + 0.002 * k
        offset.update(measured - difference, measured + delay)
    return offset


@pytest.mark.parametrize('difference', [-5.0, -0.3, 0.3, 5.0])
def test_a_difference_is_found_under_delays(difference: float) -> None:
    delays = 0.001 + np.random.default_rng(3).exponential(0.02, 2000)
    offset = offset_of(difference, delays)
    assert offset.behind == pytest.approx(difference, abs=0.01)
    side = 'behind' if difference > 0.0 else 'ahead of'
    assert f's {side}' in str(offset.problem(0.25))
    assert 'synchronise' in str(offset.problem(0.25))
    assert offset.problem(5.5) is None


def test_a_stall_is_no_difference() -> None:
    """All that queued up while this computer was busy comes at once, the newest message hardly late."""
    queued = np.arange(1.0, 0.0, -0.002)
    offset = offset_of(0.0, np.concatenate([np.full(500, 0.001), queued, np.full(5, 0.001)]))
    assert offset.problem(0.25) is None


def test_a_clock_that_is_set_back_is_noticed_within_two_seconds() -> None:
    offset = ClockOffset()
    for k in range(3000):
        measured = 1e9 + 0.002 * k
        offset.update(measured + (1.0 if k >= 1500 else 0.0), measured + 0.001)
    assert offset.behind == pytest.approx(-0.999, abs=1e-6)
    assert offset.remark(0.25) is not None
    for k in range(3000, 4500):
        measured = 1e9 + 0.002 * k
        offset.update(measured, measured + 0.001)
    assert offset.problem(0.25) is offset.remark(0.25) is None
    offset.update(1e9 + 8.0, 1e9 + 9.0)
    assert offset.problem(0.25) is None
    assert '1 s behind' in str(offset.remark(0.25))


def test_simulated_time_is_named() -> None:
    offset = ClockOffset()
    assert offset.problem(0.25) is None
    offset.update(12.5, 1.7e9)
    assert 'use_sim_time' in str(offset.problem(0.25))
    offset = ClockOffset()
    offset.update(1.7e9, 12.5)
    assert 'use_sim_time' in str(offset.problem(0.25))
