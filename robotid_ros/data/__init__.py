"""Recordings as they came, datasets ready for identification, and their files."""

from robotid_ros.data.csv_table import write_csv
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.data.processing import process_file, process_recording, summarize
from robotid_ros.data.readers import read_recording
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
    'save_dataset',
    'save_recording',
    'summarize',
    'write_csv',
]
