# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Live data capture and identification of robot arms.

The numerical core (``model``, ``dynamics``, ``friction``, ``signals``, ``data``, ``excitation``,
``identification``, ``loads``, ``calibration``, ``free_floating``) needs numpy and scipy only; ROS is
imported by ``nodes`` alone and MuJoCo by ``simulation`` alone.
"""

__version__: str


def __getattr__(name: str) -> str:
    """Return the version when it is asked for: to look it up takes longer than to start."""
    if name != '__version__':
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version('robotid_ros')
    except PackageNotFoundError:  # run from a source tree that was never installed
        return '0.0.0+source'
