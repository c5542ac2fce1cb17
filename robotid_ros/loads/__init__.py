# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What an identified arm carries and what touches it: payloads, force-torque sensors, contacts.

All of them read what an identified model leaves of the measured torque.
"""

from robotid_ros.loads.payload import PayloadResult, drive_gains, identify_payload

__all__ = ['PayloadResult', 'drive_gains', 'identify_payload']
