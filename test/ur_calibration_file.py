# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The file in which a controller of Universal Robots holds the torque constants of its arm.

The text has the layout of the files of two public e-series arms (github.com/INTO-CPS-Association/aurt, UR5e;
github.com/philipmarschner/dmp_project) and of six in github.com/savidini/match_ur_control_backup, all read on
2026-11-23; the numbers are made up.
"""

import numpy as np

CONSTANTS = [0.1234, 0.1222, 0.1099, 0.0811, 0.0805, 0.0797]


def summary(constants: list[float], *, serial: bool = True, factor: float = 1.0) -> str:
    """Return the text of a file; ``factor`` makes its torques wrong."""
    blocks = []
    for joint, constant in enumerate(constants):
        current = np.array([-1.805, -0.934, -0.586, 0.0, 0.552, 0.944, 1.732]) * (1.0 + 0.07 * joint)
        torque = factor * constant * current
        rows = [
            f'    {speed:+.2f}   {7.4 * speed:+.3f}   {i:+.3f}  +45.74   {tau:+.3f}   {"+0.072" if i else "-nan"}\n'
            for speed, i, tau in zip([-3.2, -0.5, -0.01, 0.0, 0.01, 0.5, 3.2], current, torque, strict=True)
        ]
        blocks.append(
            f'**** Joint {joint}{f", serial number 99{joint}" if serial else " "}: \n'
            '  Calibration revision : v12.0.-1498\n'
            '  K_tau    tau_avg  Stiction-  Stiction+  TauMax-  TauMax+  Avg. temp. \n'
            f'  {constant:+.4f}   0.1037  -0.05894    +0.05545  -0.1814   0.1741     +40.03\n\n'
            f'  Ang. vel.    U        I      Temp     Tau       Km \n{"".join(rows)}{"-" * 66}\n\n'
        )
    return ''.join(blocks)
