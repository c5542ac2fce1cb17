# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Reports that people read: figures, tables and a verdict in one self-contained page."""

from robotid_ros.report.content import Figure, Report, Table, Verdict
from robotid_ros.report.page import can_draw, render_report, write_report

__all__ = ['Figure', 'Report', 'Table', 'Verdict', 'can_draw', 'render_report', 'write_report']
