# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The whole loop over real ROS 2: parked arm to identified model, with the simulated arm of the demonstration."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmark.row import Row
from robotid_ros.demo.run import DemoSettings, run_demo
from robotid_ros.model.packaged import packaged_folder


def demonstration(quick: bool) -> Iterator[Row]:
    """Run the demonstration: four nodes in processes of their own, identified and validated on another trajectory."""
    if quick:
        yield Row(what='demonstration', note='left out of a quick run')
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = DemoSettings(robot='ur10e', config=packaged_folder() / 'ur10e.yaml', folder=Path(folder))
        begun = time.monotonic()
        outcome = run_demo(settings, lambda part, what: None)
        spent = time.monotonic() - begun
    yield Row(
        what='demonstration: design, run, record, identify, validate; UR10e over DDS',
        unit='s',
        values=spent,
        high=180.0,
        runs='one run, wall time',
    )
    yield Row(
        what='match in validation with the measured torque of the simulated arm, per joint',
        unit='%',
        values=tuple(outcome.result.metrics['validation'].match.tolist()),
        better='higher',
        low=85.0,
        runs='one run, second trajectory',
        note='the arm has everything that imperfect_arm adds one after the other; defaults',
    )


CASES = (demonstration,)
