# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Whether a motion repeats is measured: random periodic motions between rests are found, free ones are not."""

import numpy as np
import pytest

from robotid_ros.signals.repetition import own_repetition, repetition


def periodic(rng, rate):
    """Return times, positions and the period of a run with an approach, a rest before, and noise."""
    period, joints = 10 ** rng.uniform(0.1, 1.5), int(rng.integers(1, 8))
    time = np.arange(0.0, rng.uniform(2.3, 8.0) * period, 1.0 / rate)
    phase = 2.0 * np.pi * np.outer(time, np.arange(1, 6)) / period
    sine, cosine = rng.standard_normal((2, 5, joints)) / np.arange(1, 6)[:, None]
    run = 10 ** rng.uniform(-1.5, 0.3) * (np.sin(phase) @ sine + np.cos(phase) @ cosine)
    before = np.arange(0.0, rng.uniform(0.0, 0.4 * period), 1.0 / rate)
    share = np.clip(2.0 * np.arange(len(before)) / max(len(before), 1) - 1.0, 0.0, 1.0)
    run = np.concatenate([(share**2 * (3.0 - 2.0 * share))[:, None] * run[0], run])
    return np.arange(len(run)) / rate, run + 10 ** rng.uniform(-6, -4) * rng.standard_normal(run.shape), period


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(60))
def test_a_motion_that_repeats_is_found_with_its_period(seed):
    time, position, period = periodic(np.random.default_rng(seed), 200.0)
    assert repetition(time, position, period) is not None
    found = own_repetition(time, position)
    assert found is not None
    assert found[0] == pytest.approx(period, rel=1e-4)
    assert repetition(time, position, 0.73 * period) is None


@pytest.mark.parametrize('seed', range(60))
def test_a_free_motion_repeats_with_no_period(seed):
    rng = np.random.default_rng(seed)
    joints, span, count = int(rng.integers(1, 8)), 10 ** rng.uniform(1, 2.3), int(rng.integers(5, 60))
    points = rng.uniform(-1.0, 1.0, (count + 1, joints))
    time = np.arange(0.0, span, 0.01)
    at = np.minimum((time / span * count).astype(int), count - 1)
    s = (time / span * count - at)[:, None]
    position = points[at] + (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5) * (points[at + 1] - points[at])
    assert own_repetition(time, position) is None
    assert repetition(time, position, rng.uniform(0.1, 0.5) * span) is None


@pytest.mark.parametrize('seed', range(8))
def test_a_motion_that_goes_elsewhere_too_is_not_averaged(seed):
    """A quarter of the time in other places tells more than the noise that averaging would take away."""
    rng = np.random.default_rng(seed)
    time, position, period = periodic(rng, 200.0)
    for share, found in ((0.02, True), (0.25, False)):
        after = np.arange(int(share * len(time))) / 200.0
        elsewhere = np.ptp(position, axis=0) * rng.uniform(0.5, 1.0, position.shape[1])
        more = position[-1] + elsewhere * np.sin(0.77 * 2.0 * np.pi * after / period)[:, None]
        whole = np.concatenate([position, more])
        assert (own_repetition(np.arange(len(whole)) / 200.0, whole) is not None) == found


def test_rest_is_no_repetition():
    time = np.arange(0.0, 40.0, 0.01)
    assert own_repetition(time, np.zeros((len(time), 3))) is None
    assert repetition(time, 1e-5 * np.random.default_rng(0).standard_normal((len(time), 3)), 5.0) is None
