# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings as they came, datasets ready for identification, and their files."""

from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.data.processing import process_file, process_recording, read_strokes, summarize
from robotid_ros.data.readers import read_recording, write_csv
from robotid_ros.data.recording import Recording
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.data.storage import load_dataset, load_recording, save_dataset, save_recording

__all__ = [
    'Dataset',
    'ProcessingSettings',
    'Recording',
    'concatenate',
    'load_dataset',
    'load_recording',
    'process_file',
    'process_recording',
    'read_recording',
    'read_strokes',
    'save_dataset',
    'save_recording',
    'summarize',
    'write_csv',
]
