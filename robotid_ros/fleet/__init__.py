# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Many recordings of many arms: identified one by one, kept in one table, shown on one page."""

from robotid_ros.fleet.outcome import Entry, Outcome, entries_of
from robotid_ros.fleet.page import fleet_report, write_table
from robotid_ros.fleet.run import Task, identify_fleet

__all__ = ['Entry', 'Outcome', 'Task', 'entries_of', 'fleet_report', 'identify_fleet', 'write_table']
